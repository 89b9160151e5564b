"""Loop: one thing that a program does again and again, in a thread of its own, until it is told to stop."""

import threading
from collections.abc import Callable
from datetime import timedelta

import structlog

log = structlog.get_logger()


class Loop:
    """Calls `work` every `every`, or sooner after `wake`. An error in one pass is logged and ends that pass alone."""

    def __init__(self, name: str, work: Callable[[], None], every: timedelta) -> None:
        self.name = name
        self._work = work
        self._every = every
        self._stopping = threading.Event()
        self._wake = threading.Event()

    def wake(self) -> None:
        """Let the next pass begin at once; safe from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """End the loop after the pass that runs; safe from a signal handler or another thread."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Run passes until `stop`."""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                self._work()
            except Exception:
                # A fault of ours must be seen, and must not end a loop on which everything else depends.
                log.exception("pass failed", loop=self.name)
            self._wake.wait(self._every.total_seconds())
