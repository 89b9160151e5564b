"""Slack on 127.0.0.1: Web API, Socket Mode, signed HTTP, and a page for people. No network, no account.

    slack = Slack()
    slack.add_channel("C0GPU0001", "gpu-incidents")
    slack.add_user("U0APPROVE", "Example Approver", "approver@example.com")
    with slack:
        ...                                   # the app uses slack.base_url and its tokens
        root = slack.wait_for(lambda: slack.messages("C0GPU0001"), 10)[0]
        slack.click("C0GPU0001", root["ts"], "approve", "U0APPROVE")

Every method may be called from any thread but the emulator's own. State survives `stop()`; `start()` then
listens on the same port again.
"""

import time
from collections.abc import Callable, Coroutine
from copy import deepcopy
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, TypeVar

from aiohttp import web

from tests.lab.slack.actions import Actions
from tests.lab.slack.delivery import Delivery
from tests.lab.slack.faults import Faults
from tests.lab.slack.grants import Grants
from tests.lab.slack.hooks import Hooks
from tests.lab.slack.interaction import Interactions
from tests.lab.slack.listener import Listener
from tests.lab.slack.message import Version
from tests.lab.slack.methods import Site
from tests.lab.slack.modals import Views
from tests.lab.slack.outbox import Outbox
from tests.lab.slack.page import Page
from tests.lab.slack.signed import Reply, SignedHttp
from tests.lab.slack.socketmode import SocketMode
from tests.lab.slack.webapi import Call, Tokens, WebApi
from tests.lab.slack.wire import Clock, Json
from tests.lab.slack.workspace import AppIdentity, Channel, User, Workspace

T = TypeVar("T")


class Slack:
    """One emulated workspace with one app, on `port` (0: any free one).

    `clock` gives Unix seconds (a test may hand in one that it moves); `seed` makes the random choices repeat.
    """

    def __init__(
        self,
        workdir: Path | None = None,
        *,
        app_name: str = "Clusterwright",
        port: int = 0,
        commands: tuple[str, ...] = ("/cluster",),
        clock: Clock = time.time,
        seed: int | None = None,
    ) -> None:
        del workdir  # everything is kept in memory; taken so that all emulators are made alike
        self._listener = Listener(port)
        self.port = self._listener.port
        self.bot_token = "xoxb-lab-0001-example"
        self.app_token = "xapp-1-A0LAB0001-lab-example"
        self.signing_secret = "lab-signing-secret-example"
        self.commands = list(commands)
        self.faults = Faults()
        random = Random(seed)
        self.workspace = Workspace(AppIdentity(app_name), clock, random)
        self._views = Views(self.workspace)
        self._sockets = SocketMode(self.workspace)
        self.http = SignedHttp(self.workspace, self.signing_secret)
        self.outbox = Outbox(self.workspace, self._sockets, self.http)
        grants = Grants(clock, random)
        site = Site(self.workspace, self._views, grants, lambda: self.root_url, self._sockets.ticket)
        self.api = WebApi(site, Tokens(self.bot_token, self.app_token), self.faults)
        self.hooks = Hooks(site, self.faults)
        make = Interactions(self.workspace, grants, self.root_url)
        self._actions = Actions(self.workspace, self._views, self.outbox, make)
        self._page = Page(self.workspace, self._views, self._actions, self.outbox, self.commands)
        routes = [
            web.post("/api/{method}", self.api.take),
            web.get("/api/{method}", self.api.take),
            web.get("/link/", self._sockets.serve),
            web.post("/{kind:actions|commands}/{team}/{token}", self.hooks.take),
            *self._page.routes(),
        ]
        self._listener.serve(routes, [self._page, self._sockets, self.outbox])

    @property
    def root_url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What the app takes as Slack's Web API."""
        return f"{self.root_url}/api/"

    @property
    def page_url(self) -> str:
        """The page for people."""
        return f"{self.root_url}/"

    def page_for(self, user: str, channel: str = "", thread_ts: str = "") -> str:
        """The page as one user looks at a channel or thread; without a channel, at the App Home."""
        parts = "/".join(part for part in (channel or "home", thread_ts) if part)
        return f"{self.root_url}/?user={user}#/{parts}"

    @property
    def bot_user(self) -> str:
        """The user id under which the app writes."""
        return self.workspace.app.user_id

    def start(self) -> "Slack":
        """Listen, on the same port each time."""
        self._listener.start()
        return self

    def stop(self) -> None:
        """Close all connections and stop listening; what people wrote stays."""
        self._listener.stop()

    def __enter__(self) -> "Slack":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def add_user(self, user: str, name: str, email: str, **more: Any) -> None:
        """A person; `is_restricted`, `is_bot`, `deleted`, `tz` may be given."""
        with self.workspace.changed:
            self.workspace.users[user] = User(user, name, email, **more)
            self.workspace.touch()

    def add_channel(self, channel: str, name: str, **more: Any) -> None:
        """A channel; `is_member=False` or `is_archived=True` may be given."""
        with self.workspace.changed:
            self.workspace.channels[channel] = Channel(channel, name, **more)
            self.workspace.touch()

    def channel(self, channel: str) -> Channel:
        """A channel, to change what it is (`slack.channel("C1").is_archived = True`)."""
        return self.workspace.channels[channel]

    def set_group(self, group: str, users: list[str]) -> None:
        """A user group (`S…`) and its members."""
        with self.workspace.changed:
            self.workspace.groups[group] = list(users)

    def messages(self, channel: str) -> list[Json]:
        """The channel's root messages as on the wire (with metadata), oldest first."""
        with self.workspace.changed:
            place = self.workspace.channel(channel)
            roots = [message for message in place.messages if message.is_root]
            return self.workspace.wires(place, roots, metadata=True)

    def replies(self, channel: str, ts: str) -> list[Json]:
        """The replies below a root, oldest first, without the root."""
        with self.workspace.changed:
            place = self.workspace.channel(channel)
            return self.workspace.wires(place, self.workspace.thread(place, ts), metadata=True)

    def lost(self, channel: str) -> list[Json]:
        """Messages that were accepted and are shown nowhere (their thread_ts is no root's)."""
        with self.workspace.changed:
            place = self.workspace.channel(channel)
            return self.workspace.wires(place, place.lost, metadata=True)

    def ephemerals(self, user: str) -> list[Json]:
        """What only this user sees, oldest first; each has its `channel`."""
        with self.workspace.changed:
            return self.workspace.seen_only_by(user)

    def versions(self, channel: str, ts: str) -> list[Version]:
        """All that a message has shown, oldest first."""
        with self.workspace.changed:
            return list(self.workspace.message(self.workspace.channel(channel), ts).versions)

    def views(self, user: str) -> list[Json]:
        """The user's open modals, the one on top last."""
        with self.workspace.changed:
            return deepcopy(self._views.stacks.get(user, []))

    def home(self, user: str) -> Json | None:
        """The user's App Home, when the app published one."""
        with self.workspace.changed:
            return deepcopy(self._views.homes.get(user))

    @property
    def requests(self) -> list[Call]:
        """Every call of the Web API so far."""
        with self.workspace.changed:
            return list(self.api.calls)

    def calls(self, method: str) -> list[Call]:
        """The calls of one method so far."""
        return [call for call in self.requests if call.method == method]

    @property
    def deliveries(self) -> list[Delivery]:
        """Everything sent to the app so far."""
        with self.workspace.changed:
            return list(self.outbox.log)

    @property
    def connections(self) -> int:
        """How many sockets the app has open now."""
        return len(self._sockets.connections)

    def wait_for(self, predicate: Callable[[], T], timeout_seconds: float = 30.0) -> T:
        """The first true value of `predicate`, looked at again at every change; TimeoutError else."""
        end = time.monotonic() + timeout_seconds
        while True:
            seen = self.workspace.revision
            value = predicate()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not true within {timeout_seconds:g} s; last value: {value!r}")
            with self.workspace.changed:
                if self.workspace.revision == seen:
                    self.workspace.changed.wait(min(left, 0.2))

    def click(self, channel: str, ts: str, action_id: str, user: str, **how: Any) -> Delivery:
        """Click (and confirm). `version=0` clicks what the message showed first; `value` picks an option."""
        return self._run(self._actions.click(channel, ts, action_id, user, **how))

    def click_home(self, user: str, action_id: str, value: Any = None) -> Delivery:
        """Click in the user's App Home."""
        return self._run(self._actions.click_view(user, action_id, home=True, value=value))

    def click_modal(self, user: str, action_id: str, value: Any = None) -> Delivery:
        """Click in the user's top modal."""
        return self._run(self._actions.click_view(user, action_id, home=False, value=value))

    def submit(self, user: str, values: Json | None = None, view_id: str | None = None) -> Delivery:
        """Submit the user's top modal. `values`: block_id or action_id → text or option value."""
        return self._run(self._actions.submit(user, values or {}, view_id))

    def close_modal(self, user: str) -> Delivery | None:
        """Close the user's top modal with its Cancel button."""
        return self._run(self._actions.close(user))

    def slash(self, user: str, channel: str, text: str, command: str = "/cluster") -> Delivery:
        """Type `/cluster text`."""
        return self._run(self._actions.slash(user, channel, command, text))

    def say(self, user: str, channel: str, text: str, thread_ts: str | None = None) -> str:
        """A person writes; the ts of the message. The app gets no event for it (it subscribes to none)."""
        with self.workspace.changed:
            place = self.workspace.channel(channel)
            return self.workspace.add(place, user, text, [], thread_ts=thread_ts).ts

    def event(self, event: Json) -> Delivery:
        """Send an event; returns after the first attempt, retries go on in the background."""
        return self._run(self.outbox.event(event))

    def open_home(self, user: str) -> Delivery:
        """The user opens the App Home tab."""
        return self.event(self._page.home_opened(user))

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Slack ends all sockets politely (`warning` announces only)."""
        self._run(self._sockets.disconnect(reason))

    def kill_sockets(self) -> None:
        """All sockets are reset."""
        self._run(_now(self._sockets.kill))

    def freeze_sockets(self) -> None:
        """All sockets stay open and dead."""
        self._run(_now(self._sockets.freeze))

    def url_verification(self) -> Reply:
        """HTTP mode: Slack's challenge."""
        return self._run(self.http.url_verification())

    def ssl_check(self, smuggled: Json | None = None) -> Reply:
        """HTTP mode: Slack's certificate check, perhaps with the payload of an interaction beside it."""
        return self._run(self.http.ssl_check(smuggled))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._listener.run(work)


async def _now(step: Callable[[], None]) -> None:
    step()
