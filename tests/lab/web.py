"""What the lab's own web servers have in common: how they end."""

import asyncio

from aiohttp import web

SETTLE_SECONDS = 0.05


async def end(runner: web.AppRunner) -> None:
    """Stop serving and leave no connection behind, not even one that was accepted meanwhile."""
    server = runner.server
    await runner.cleanup()
    await asyncio.sleep(SETTLE_SECONDS)
    if server is not None:
        await server.shutdown(SETTLE_SECONDS)
        await asyncio.sleep(SETTLE_SECONDS)
