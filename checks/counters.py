"""Counters and what a check read of them earlier: growth over a time span, tolerant of resets (rule T3)."""

import itertools
from collections.abc import Mapping

Reading = tuple[float, float]
"""Seconds since boot and the value read then."""

Past = Mapping[str, tuple[Reading, ...]]
"""What a check read earlier, by name: the first value, then one entry for each change, oldest first."""


def last_reading(past: Past, name: str) -> float | None:
    """Return the value that was read last under `name`, None before the first reading."""
    readings = past.get(name, ())
    return readings[-1][1] if readings else None


def increase(past: Past, name: str, value: float) -> float:
    """Return by how much a counter has grown since it was last read, `value` being what it shows now.

    A counter that went back started again at 0. The first reading ever is no growth.
    """
    before = last_reading(past, name)
    if before is None:
        return 0.0
    return value - before if value >= before else value


def increase_within(past: Past, name: str, value: float, uptime: float, seconds: float) -> float:
    """Return by how much a counter has grown in the last `seconds`, `value` being what it shows now.

    A counter that went back started again at 0. The first reading ever is no growth.
    """
    readings = past.get(name, ())
    before = [each for at, each in readings if at < uptime - seconds][-1:]
    chain = [*before, *(each for at, each in readings if at >= uptime - seconds), value]
    return sum(new - old if new >= old else new for old, new in itertools.pairwise(chain))


def watched_seconds(past: Past, name: str, uptime: float) -> float:
    """Return for how long the counter has been read, 0 before its first reading."""
    readings = past.get(name, ())
    return uptime - readings[0][0] if readings else 0.0
