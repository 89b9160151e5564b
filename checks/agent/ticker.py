"""Ticker: the moments at which the agent's threads wake together.

What an idle agent costs is waking up, more than what it does then: its memory has left the caches. So nothing
waits for a moment of its own unless it must. Part of the time between two ticks is random, so that the agents
of a cluster neither run checks nor report in step.
"""

import random
import threading

from checks.agent.runtime import Runtime
from checks.debounce import Instant

TICK_SECONDS = 30.0
"""Longest time between two ticks, and so the shortest interval of a check (table 1.2, ib-state)."""

JITTER = 0.1
"""Part of every wait that is random."""

DUE_PART = 0.85
"""A check that has waited for this part of its interval is due: ticks may come early."""


class Ticker:
    """Ticks at most `seconds` apart. Safe to use from several threads."""

    def __init__(self, runtime: Runtime, chance: random.Random, seconds: float) -> None:
        self._runtime = runtime
        self._chance = chance
        self._seconds = seconds
        self._lock = threading.Lock()
        # Anywhere in the first interval: the agents of a cluster may all start at once.
        self._next = runtime.uptime() + seconds * chance.random()

    def now(self) -> Instant:
        """Return the time by which findings are judged."""
        return Instant(self._runtime.wall(), self._runtime.uptime())

    def wait_seconds(self) -> float:
        """Return the time until the next tick."""
        with self._lock:
            now = self._runtime.uptime()
            if now >= self._next:
                self._next = now + self.jittered(self._seconds)
            return self._next - now

    def jittered(self, seconds: float) -> float:
        """Return a little less than `seconds`, by a different amount each time."""
        return seconds * (1 - JITTER * self._chance.random())
