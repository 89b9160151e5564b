"""The embedded server in a thread of its own."""

from __future__ import annotations

import asyncio
import secrets
import threading
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.lab.kube.embedded import disruption
from tests.lab.kube.embedded.controllers import begin
from tests.lab.kube.embedded.http import application
from tests.lab.kube.embedded.lifecycle import NodeLifecycle
from tests.lab.kube.embedded.state import State
from tests.lab.web import bound, end, serve

if TYPE_CHECKING:
    import socket
    from collections.abc import Coroutine

LIFECYCLE_SECONDS = 0.25
"""Between two passes over all nodes; kube-controller-manager has 5 s (node-monitor-period)."""
PATIENCE_SECONDS = 60.0
"""For the server's own thread to start or stop serving."""


class EmbeddedServer:
    """Serves on one port of 127.0.0.1; the data stays while it does not serve."""

    def __init__(self) -> None:
        self.admin_token = secrets.token_urlsafe(24)
        self.state = State(self.admin_token)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._runner: web.AppRunner | None = None
        self._listener: socket.socket | None = None
        self._lifecycle: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded-kube", daemon=True)
        self._thread.start()
        self._loop.call_soon_threadsafe(begin, self.state)

    def serve(self) -> None:
        """Listen on the port of before, or on a free one the first time."""
        self._run(self._serve())

    def pause(self) -> None:
        """Close the socket and every connection; nothing is lost."""
        self._run(self._pause())

    def close(self) -> None:
        """Stop for good."""
        self.pause()
        if self._lifecycle is not None:
            self._loop.call_soon_threadsafe(self._lifecycle.cancel)
            self._run(asyncio.sleep(0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    def compact(self) -> None:
        """Forget the history: older revisions are answered with 410."""
        self._loop.call_soon_threadsafe(self.state.store.compact)
        self._run(asyncio.sleep(0))

    def watch_nodes(self, grace_seconds: float) -> None:
        """Run node lifecycle, taint eviction and pod garbage collection from now on."""
        lifecycle = NodeLifecycle(self.state, grace_seconds)

        async def step() -> None:
            while True:
                if not self.state.held:
                    lifecycle.step(self._loop.time())
                await asyncio.sleep(LIFECYCLE_SECONDS)

        async def begin() -> None:
            self._lifecycle = self._loop.create_task(step())

        self._run(begin())

    def hold_controllers(self, *, held: bool) -> None:
        """Let the controllers do nothing, or go on with what has changed meanwhile."""

        async def switch() -> None:
            self.state.held = held
            if not held:
                disruption.catch_up(self.state)

        self._run(switch())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    async def _serve(self) -> None:
        self.state.store.begin_watches()
        self._runner = web.AppRunner(application(self.state), access_log=None, shutdown_timeout=0.1,
                                     handler_cancellation=True)  # fmt: skip
        self._listener = bound(self.port)
        self.port = self._listener.getsockname()[1]
        await serve(self._runner, self._listener)

    async def _pause(self) -> None:
        if self._runner is not None and self._listener is not None:
            await end(self._runner, self._listener)
            self._runner = self._listener = None
