"""Metronome: the moments at which the agent's threads wake together.

An idle agent costs what waking up costs, more than what it does then: its memory has left the caches. So
nothing waits for a moment of its own that need not. The time between two ticks is in part random, so that
the agents of a cluster neither look nor report in step.
"""

import random
import threading
import time
from collections.abc import Callable

from checks.debounce import Moment

TICK_SECONDS = 30.0
"""Longest time between two ticks, and so the shortest in which a check looks again (table 1.2, ib-state)."""

JITTER = 0.1
"""Part of every wait that is random."""

DUE_PART = 0.85
"""A check that has waited for this part of its time looks: ticks may come earlier than they are named."""


class Metronome:
    """Ticks at most `seconds` apart. Safe to use from several threads.

    `now` tells the time by which findings are judged. Waits go by the machine's own clock.
    """

    def __init__(self, now: Callable[[], Moment], chance: random.Random, seconds: float) -> None:
        self.now = now
        self._chance = chance
        self._seconds = seconds
        self._lock = threading.Lock()
        # Anywhere in the first interval: the agents of a cluster may all begin at once.
        self._next = time.monotonic() + seconds * chance.random()

    def wait_seconds(self) -> float:
        """Return the time until the next tick."""
        with self._lock:
            now = time.monotonic()
            if now >= self._next:
                self._next = now + self.jittered(self._seconds)
            return self._next - now

    def jittered(self, seconds: float) -> float:
        """Return a little less than `seconds`, each time another little."""
        return seconds * (1 - JITTER * self._chance.random())
