"""Loop: work that a program repeats at an interval, in its own thread, until it is stopped."""

import threading
from collections.abc import Callable
from datetime import timedelta

import structlog

log = structlog.get_logger()


class Loop:
    """Calls `work` at the interval `every`, or sooner after `wake`. An error is logged and ends only that pass."""

    def __init__(self, name: str, work: Callable[[], None], every: timedelta) -> None:
        self.name = name
        self._work = work
        self._every = every
        self._stopping = threading.Event()
        self._wake = threading.Event()

    def wake(self) -> None:
        """Start the next pass at once; safe from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """End the loop after the current pass; safe from any thread."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Run passes until `stop`."""
        while not self._stopping.is_set():
            try:
                self._work()
            except Exception:
                # A bug must be visible, and must not end a loop on which everything else depends.
                log.exception("pass failed", loop=self.name)
            self._wake.wait(self._every.total_seconds())
            # Cleared before the pass that answers it, so that a wake during a pass leads to another one.
            self._wake.clear()
