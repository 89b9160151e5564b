"""What the lab's own web servers have in common: how they end."""

import asyncio

from aiohttp import web

SETTLE_SECONDS = 0.05


async def end(runner: web.AppRunner) -> None:
    """Stop serving and leave no connection behind.

    Not one that was accepted at the last moment, and not one whose peer does not read what it was sent.
    """
    for site in list(runner.sites):
        await site.stop()
    await asyncio.sleep(SETTLE_SECONDS)
    server = runner.server
    transports = [each.transport for each in server.connections] if server is not None else []
    await runner.cleanup()
    for transport in transports:
        if transport is not None:
            transport.abort()
    await asyncio.sleep(SETTLE_SECONDS)
