"""What the lab's own web servers have in common: how they begin and end on a port of 127.0.0.1."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Protocol

from aiohttp import web

SETTLE_SECONDS = 0.05


def bound(port: int) -> socket.socket:
    """Return a socket that has the port (0: any free one), also right after another server had it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener


class Closable(Protocol):
    """A part that must let go of its connections before the server can stop."""

    async def close(self) -> None:
        """Let go."""
        ...


async def serve(runner: web.AppRunner, listener: socket.socket) -> None:
    """Serve on a bound socket; returns when connections are accepted."""
    await runner.setup()
    await web.SockSite(runner, listener).start()


async def end(runner: web.AppRunner, listener: socket.socket, parts: Iterable[Closable] = ()) -> None:
    """Stop serving, close the parts and the socket, and leave no connection behind.

    Not one whose peer does not read what it was sent, and not one that was just accepted: asyncio of Python
    3.11 forgets to close that when its server is closed in the same moment.
    """
    asyncio.get_running_loop().remove_reader(listener.fileno())
    await asyncio.sleep(SETTLE_SECONDS)
    for part in parts:
        await part.close()
    server = runner.server
    transports = [each.transport for each in server.connections] if server is not None else []
    await runner.cleanup()
    for transport in transports:
        if transport is not None:
            transport.abort()
    await asyncio.sleep(SETTLE_SECONDS)
