"""The connection from Slack: Socket Mode with a watchdog, or signed HTTP in the bot's own server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
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
"""Path of Slack's requests in HTTP mode."""

PING_SECONDS: Final = 2.0
"""Interval of pings on the socket; a dead one is detected after four of them."""

GIVE_UP_SECONDS: Final = 15.0
"""How long a lost socket may try to reconnect before it is replaced; its ticket may have expired."""

LOOK_SECONDS: Final = 1.0


class SlackConnection:
    """The bot's one connection from Slack. `sleep` waits for a number of seconds.

    `signing_secret` is empty in Socket Mode.
    """

    def __init__(
        self,
        inbound: SlackInbound,
        chat: SlackChat,
        store: IncidentStore,
        signing_secret: str,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._inbound = inbound
        self._chat = chat
        self._store = store
        self._app = inbound.app(signing_secret)
        self._sleep = sleep

    def route(self) -> Route:
        """Return the route of Slack's signed requests in HTTP mode."""
        requests = AsyncSlackRequestHandler(self._app)

        async def take(request: Request) -> Response:
            return await requests.handle(request)

        return Route(EVENTS_PATH, take, methods=["POST"])

    async def authenticate(self) -> None:
        """Ask Slack who the bot is until it answers; before that, no message in the channel counts as the bot's."""
        while not self._inbound.team:
            try:
                self._inbound.team = await self._chat.authenticate()
            except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
                self._store.report_trouble("slack-login", str(error))
                await self._sleep(LOOK_SECONDS)
        self._store.report_trouble("slack-login", "")
        log.info("slack_authenticated", team=self._inbound.team, user=self._chat.user)

    async def listen(self, app_token: Callable[[], str]) -> None:
        """Keep one socket open until cancelled. The token is read again for each new one."""
        while True:
            try:
                token = app_token()
            except OSError as error:
                self._store.report_trouble("slack-socket", f"the app token cannot be read: {error}")
                await self._sleep(LOOK_SECONDS)
                continue
            await self._one_socket(token)

    async def _one_socket(self, token: str) -> None:
        """Serve one socket client; return when it has been dead for too long, or cannot even start."""
        quiet = logging.getLogger("bot.slack.socket")
        # The library logs a traceback every second while Slack is away; this loop reports it once.
        quiet.setLevel(logging.CRITICAL)
        socket = AsyncSocketModeHandler(self._app, token, logger=quiet, ping_interval=PING_SECONDS)
        loop = asyncio.get_running_loop()
        connecting = asyncio.create_task(socket.client.connect())  # type: ignore[no-untyped-call] # the library's
        alive_at = loop.time()
        try:
            while loop.time() - alive_at < GIVE_UP_SECONDS:
                await self._sleep(LOOK_SECONDS)
                connected = await socket.client.is_connected()
                alive_at = loop.time() if connected else alive_at
                self._store.report_trouble("slack-socket", "" if connected else "not connected")
        finally:
            connecting.cancel()
            await socket.client.close()  # type: ignore[no-untyped-call] # the library's
            await asyncio.gather(connecting, return_exceptions=True)
