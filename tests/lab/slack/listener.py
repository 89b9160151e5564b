"""The emulator's own thread: an event loop and a web server on one fixed port of 127.0.0.1."""

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from tests.lab.web import Closable, bound, end, serve

if TYPE_CHECKING:
    import socket

T = TypeVar("T")
_START_SECONDS = 30.0
_CALL_SECONDS = 60.0


class Listener:
    """Starts and stops serving on `port` (0: any free one), as often as wanted.

    A socket that is bound and never listens keeps the port for us while the service is down: connections
    are refused, and nobody else is given the port.
    """

    def __init__(self, port: int) -> None:
        held = bound(port)
        self.port = int(held.getsockname()[1])
        weakref.finalize(self, os.close, held.detach())
        self._parts: list[Closable] = []
        self._routes: list[web.RouteDef] = []
        self._runner: web.AppRunner | None = None
        self._listening: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def serve(self, routes: Sequence[web.RouteDef], parts: Sequence[Closable]) -> None:
        """What to serve from the next start on, and what to close at a stop."""
        self._routes.extend(routes)
        self._parts.extend(parts)

    def start(self) -> None:
        """Listen; returns when connections are accepted."""
        if self._thread is not None:
            return
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_live, args=(loop,), name="slack-emulator", daemon=True)
        self._thread.start()
        self._loop = loop
        try:
            self._runner = self.run(self._open())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Close all connections, stop listening, end the thread."""
        if self._thread is None:
            return
        try:
            self.run(self._close())
        finally:
            self._end()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the emulator's loop and wait for it; ConnectionError while it is stopped."""
        if self._loop is None:
            work.close()
            raise ConnectionError("the Slack emulator is stopped")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_SECONDS)

    async def _open(self) -> web.AppRunner:
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.add_routes(self._routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        self._listening = bound(self.port)
        await serve(runner, self._listening)
        return runner

    async def _close(self) -> None:
        if self._runner is None or self._listening is None:
            return
        await end(self._runner, self._listening, self._parts)

    def _end(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_START_SECONDS)
        loop.close()


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
