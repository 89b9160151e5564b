"""What serves the page: static files, the state to draw, a stream of changes, and what people do in it.

Only the page uses these paths (`/_lab/…`); the app under test never does.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

from tests.lab.slack.actions import Actions
from tests.lab.slack.delivery import Delivery
from tests.lab.slack.modals import Views
from tests.lab.slack.outbox import Outbox
from tests.lab.slack.page_state import page_state
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Workspace

_STATIC = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_POLICY = (
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Changes within this time reach the page as one.
_GATHER_SECONDS = 0.03
_STREAM_COMMENT_SECONDS = 15.0


class Page:
    """Serves the page; the browser is the only client."""

    def __init__(
        self,
        workspace: Workspace,
        views: Views,
        actions: Actions,
        outbox: Outbox,
        commands: Sequence[str],
    ) -> None:
        self._workspace = workspace
        self._views = views
        self._actions = actions
        self._outbox = outbox
        self._commands = commands
        self._streams: set[asyncio.Task[object]] = set()

    def routes(self) -> list[web.RouteDef]:
        """All paths of the page."""
        return [
            web.get("/", self._index),
            web.get("/archives/{channel}/{message}", self._index),
            web.get("/_lab/static/{name}", self._file),
            web.get("/_lab/state", self._state),
            web.get("/_lab/stream", self._stream),
            web.post("/_lab/click", self._click),
            web.post("/_lab/submit", self._submit),
            web.post("/_lab/close", self._close),
            web.post("/_lab/say", self._say),
            web.post("/_lab/home", self._home),
        ]

    def home_opened(self, user: str) -> Json:
        """The event that tells the app that a user looks at its home."""
        view = self._views.homes.get(user)
        return {
            "type": "app_home_opened",
            "user": user,
            "channel": f"D{user[1:]}",
            "tab": "home",
            "event_ts": f"{self._workspace.clock():.6f}",
            **({"view": view} if view else {}),
        }

    async def close(self) -> None:
        """End the streams, so that the server can stop."""
        for stream in list(self._streams):
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

    async def _index(self, request: web.Request) -> web.Response:
        return _static("page.html")

    async def _file(self, request: web.Request) -> web.Response:
        return _static(request.match_info["name"])

    async def _state(self, request: web.Request) -> web.Response:
        user, channel = request.query.get("user", ""), request.query.get("channel", "")
        state = page_state(self._workspace, self._views, user, channel)
        return web.json_response({**state, "commands": list(self._commands)})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        loop, wake = asyncio.get_running_loop(), asyncio.Event()

        def watcher() -> None:
            loop.call_soon_threadsafe(wake.set)

        with self._workspace.changed:
            self._workspace.watchers.append(watcher)
        try:
            await self._tell(response, wake)
        except (ConnectionError, asyncio.CancelledError):
            return response
        finally:
            with self._workspace.changed:
                self._workspace.watchers.remove(watcher)
            self._streams.discard(task)
        return response

    async def _tell(self, response: web.StreamResponse, wake: asyncio.Event) -> None:
        await response.write(b"retry: 700\n\n")
        while True:
            wake.clear()
            await response.write(b"data: %d\n\n" % self._workspace.revision)
            try:
                await asyncio.wait_for(wake.wait(), _STREAM_COMMENT_SECONDS)
            except TimeoutError:
                continue
            await asyncio.sleep(_GATHER_SECONDS)

    async def _click(self, request: web.Request) -> web.Response:
        asked = await _asked(request)
        user, action = asked["user"], asked["action_id"]
        place = asked["place"]
        try:
            if place["kind"] == "message":
                how = {name: place[name] for name in ("version", "block_id") if place.get(name) is not None}
                delivery = await self._actions.click(
                    place["channel"], place["ts"], action, user, value=asked.get("value"), **how
                )
            else:
                is_home = place["kind"] == "home"
                delivery = await self._actions.click_view(
                    user, action, home=is_home, value=asked.get("value")
                )
        except LookupError as error:
            return web.json_response({"acked": False, "why": str(error)})
        return _outcome(delivery)

    async def _submit(self, request: web.Request) -> web.Response:
        asked = await _asked(request)
        try:
            delivery = await self._actions.submit(asked["user"], asked["values"], asked["view_id"])
        except LookupError as error:
            return web.json_response({"acked": False, "why": str(error), "errors": {}})
        return _outcome(delivery)

    async def _close(self, request: web.Request) -> web.Response:
        asked = await _asked(request)
        await self._actions.close(asked["user"])
        return web.json_response({})

    async def _say(self, request: web.Request) -> web.Response:
        asked = await _asked(request)
        user, channel, text = asked["user"], asked["channel"], asked["text"]
        command, _, rest = text.partition(" ")
        if text.startswith("/"):
            if command not in self._commands:
                why = f"{command} is not a valid command. The app knows: {', '.join(self._commands)}"
                return web.json_response({"acked": False, "why": why})
            return _outcome(await self._actions.slash(user, channel, command, rest.strip()))
        with self._workspace.changed:
            place = self._workspace.channel(channel)
            self._workspace.add(place, user, _escaped(text), [], thread_ts=asked.get("thread_ts"))
        return web.json_response({"acked": True, "why": ""})

    async def _home(self, request: web.Request) -> web.Response:
        asked = await _asked(request)
        return _outcome(await self._outbox.event(self.home_opened(asked["user"])))


async def _asked(request: web.Request) -> Json:
    """The body, which other sites open in the same browser cannot send with this content type."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")
    body: Json = await request.json()
    return body


def _static(name: str) -> web.Response:
    path = _STATIC / name
    if path.parent != _STATIC or path.suffix not in _KINDS or not path.is_file():
        return web.Response(status=404, text="no such file")
    return web.Response(
        text=path.read_text(encoding="utf-8"),
        content_type=_KINDS[path.suffix],
        charset="utf-8",
        headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"},
    )


def _outcome(delivery: Delivery) -> web.Response:
    return web.Response(
        text=json.dumps({"acked": delivery.acked, "why": delivery.why, "errors": delivery.errors}),
        content_type="application/json",
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
