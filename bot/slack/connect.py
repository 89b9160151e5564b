"""The way in: Socket Mode with a watchdog, or signed HTTP in the same server as everything else."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import structlog
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.lifecycle.desk import Desk
from bot.lifecycle.threads import ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.slack.hear import Hearer
from bot.slack.speak import Speaker

log = structlog.get_logger("bot.slack")

EVENTS_PATH: Final = "/slack/events"
"""Where Slack sends everything in HTTP mode."""

PING_SECONDS: Final = 2.0
"""How often the socket is asked whether it lives; a dead one is noticed after four times that."""

GIVE_UP_SECONDS: Final = 15.0
"""How long a lost socket may try to come back by itself before it is replaced; its ticket may be used up."""

LOOK_SECONDS: Final = 1.0


def http_route(app: AsyncApp) -> Route:
    """Return the route that takes Slack's signed requests."""
    handler = AsyncSlackRequestHandler(app)

    async def take(request: Request) -> Response:
        return await handler.handle(request)

    return Route(EVENTS_PATH, take, methods=["POST"])


async def introduce(speaker: Speaker, hearer: Hearer, desk: Desk) -> None:
    """Ask Slack who we are until it says; nothing of ours is recognised in the channel before."""
    while not hearer.team:
        try:
            hearer.team = await speaker.introduce()
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            desk.report_trouble("slack-login", str(error))
            await asyncio.sleep(LOOK_SECONDS)
    desk.report_trouble("slack-login", "")
    log.info("slack_introduced", team=hearer.team, user=speaker.user)


async def listen(app: AsyncApp, app_token: Callable[[], str], desk: Desk) -> None:
    """Keep one socket open until cancelled."""
    while True:
        await _one_socket(app, app_token(), desk)


async def _one_socket(app: AsyncApp, token: str, desk: Desk) -> None:
    """Serve one socket client; returns when it has been dead for too long, or cannot even begin."""
    quiet = logging.getLogger("bot.slack.socket")
    # The library prints a traceback a second while Slack is away; the watchdog below says it once.
    quiet.setLevel(logging.CRITICAL)
    handler = AsyncSocketModeHandler(app, token, logger=quiet, ping_interval=PING_SECONDS)
    loop = asyncio.get_running_loop()
    connecting = asyncio.create_task(handler.client.connect())  # type: ignore[no-untyped-call] # the library's
    alive_at = loop.time()
    try:
        while loop.time() - alive_at < GIVE_UP_SECONDS:
            await asyncio.sleep(LOOK_SECONDS)
            if await handler.client.is_connected():
                alive_at = loop.time()
                desk.report_trouble("slack-socket", "")
            else:
                desk.report_trouble("slack-socket", "not connected")
    finally:
        connecting.cancel()
        await handler.client.close()  # type: ignore[no-untyped-call] # the library's
        await asyncio.gather(connecting, return_exceptions=True)
