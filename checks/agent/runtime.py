"""Runtime: the clocks, waits and threads of the agent, in one value that a simulation can replace."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

Join = Callable[[float], None]
"""Waits at most the given number of seconds for a thread to end."""


class Runtime(Protocol):
    """What the agent needs of the machine for time and threads."""

    def wall(self) -> float:
        """Return Unix seconds by the wall clock, which may jump."""

    def uptime(self) -> float:
        """Return seconds since boot by the clock with which the kernel stamps its log; never goes back."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until `event` is set or `seconds` have passed; return whether it is set."""

    def start_thread(self, name: str, run: Callable[[], None]) -> Join:
        """Start a thread that does not keep the program alive; return what waits for its end."""


class SystemRuntime:
    """The machine's own clocks and threads."""

    def wall(self) -> float:
        """Return the system's wall clock."""
        return time.time()

    def uptime(self) -> float:
        """Return CLOCK_MONOTONIC."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Block this thread."""
        return event.wait(seconds)

    def start_thread(self, name: str, run: Callable[[], None]) -> Join:
        """Start a daemon thread."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread.join
