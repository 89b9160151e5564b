"""`python -m bot [--config FILE]`: runs the bot until it receives a signal to stop.

Exit code 0 after SIGTERM or SIGINT, 1 when it cannot go on, 2 when the settings cannot be used.
"""

import asyncio
import signal
import sys

import structlog
import uvicorn

from bot.build import Bot, build
from bot.settings import BotSettings, BotTable
from reconciler.log import log_as_json
from reconciler.settings import SettingsError, config_argument, load

log = structlog.get_logger("bot")

CONNECTION_GRACE_SECONDS = 3
"""How long open connections may finish after a signal."""

KEEP_OPEN_SECONDS = 150
"""How long an idle connection stays open: five reports, so that an agent need not reconnect for each."""


def main(argv: list[str] | None = None) -> int:
    """Run the bot and return its exit code."""
    file = config_argument("bot", "Tells people what is wrong, asks them, records what they decide.", argv)
    try:
        settings = load(BotSettings, file)
        bot = build(settings)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a person started it and reads this
        return 2
    log_as_json()
    return asyncio.run(_serve(bot, settings.bot))


async def _serve(bot: Bot, settings: BotTable) -> int:
    server = uvicorn.Server(_server_config(bot, settings))

    def leave(*_: object) -> None:
        server.should_exit = True

    # The server takes the signals while it serves, and raises them once more for us when it has ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    working = asyncio.create_task(bot.work())
    working.add_done_callback(leave)
    log.info("bot_started", listen=settings.listen)
    try:
        await server.serve()
    finally:
        working.cancel()
        (ended,) = await asyncio.gather(working, return_exceptions=True)
        await bot.close()
    if not server.started or not isinstance(ended, asyncio.CancelledError):
        log.error("bot_failed", reason=str(ended))
        return 1
    log.info("bot_stopped")
    return 0


def _server_config(bot: Bot, settings: BotTable) -> uvicorn.Config:
    host, port = settings.address
    return uvicorn.Config(
        bot.web,
        host=host,
        port=port,
        ssl_certfile=settings.tls_cert_file,
        ssl_keyfile=settings.tls_key_file,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_OPEN_SECONDS,
        timeout_graceful_shutdown=CONNECTION_GRACE_SECONDS,
    )


if __name__ == "__main__":
    sys.exit(main())
