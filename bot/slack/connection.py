"""The way in: Socket Mode with a watchdog, or signed HTTP in the same server as everything else."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.chat import ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.incidents.store import IncidentStore
from bot.slack.inbound import SlackInbound
from bot.slack.outbound import SlackChat

log = structlog.get_logger("bot.slack")

EVENTS_PATH: Final = "/slack/events"
"""Where Slack sends everything in HTTP mode."""

PING_SECONDS: Final = 2.0
"""How often the socket is asked whether it lives; a dead one is noticed after four times that."""

GIVE_UP_SECONDS: Final = 15.0
"""How long a lost socket may try to come back by itself before it is replaced; its ticket may be used up."""

LOOK_SECONDS: Final = 1.0


class SlackConnection:
    """The bot's one way in from Slack. `signing_secret` is empty in Socket Mode."""

    def __init__(
        self, inbound: SlackInbound, chat: SlackChat, store: IncidentStore, signing_secret: str
    ) -> None:
        self._inbound = inbound
        self._chat = chat
        self._store = store
        self._app = inbound.app(signing_secret)

    def route(self) -> Route:
        """Return the route that takes Slack's signed requests in HTTP mode."""
        requests = AsyncSlackRequestHandler(self._app)

        async def take(request: Request) -> Response:
            return await requests.handle(request)

        return Route(EVENTS_PATH, take, methods=["POST"])

    async def introduce(self) -> None:
        """Ask Slack who we are until it says; nothing of ours is recognised in the channel before."""
        while not self._inbound.team:
            try:
                self._inbound.team = await self._chat.introduce()
            except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
                self._store.report_trouble("slack-login", str(error))
                await asyncio.sleep(LOOK_SECONDS)
        self._store.report_trouble("slack-login", "")
        log.info("slack_introduced", team=self._inbound.team, user=self._chat.user)

    async def listen(self, app_token: Callable[[], str]) -> None:
        """Keep one socket open until cancelled; the token is read again for each new one."""
        while True:
            try:
                token = app_token()
            except OSError as error:
                self._store.report_trouble("slack-socket", f"the app token cannot be read: {error}")
                await asyncio.sleep(LOOK_SECONDS)
                continue
            await self._one_socket(token)

    async def _one_socket(self, token: str) -> None:
        """Serve one socket client; returns when it has been dead for too long, or cannot even begin."""
        quiet = logging.getLogger("bot.slack.socket")
        # The library prints a traceback a second while Slack is away; this loop says it once.
        quiet.setLevel(logging.CRITICAL)
        socket = AsyncSocketModeHandler(self._app, token, logger=quiet, ping_interval=PING_SECONDS)
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(socket.client.connect())  # type: ignore[no-untyped-call] # the library's
        alive_at = loop.time()
        try:
            while loop.time() - alive_at < GIVE_UP_SECONDS:
                await asyncio.sleep(LOOK_SECONDS)
                connected = await socket.client.is_connected()
                alive_at = loop.time() if connected else alive_at
                self._store.report_trouble("slack-socket", "" if connected else "not connected")
        finally:
            connecting.cancel()
            await socket.client.close()  # type: ignore[no-untyped-call] # the library's
            await asyncio.gather(connecting, return_exceptions=True)
