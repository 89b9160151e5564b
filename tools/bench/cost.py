"""How long something takes when it is done many times."""

import statistics
from typing import NamedTuple


class Cost(NamedTuple):
    """Milliseconds that one thing took, over `count` times."""

    name: str
    count: int
    median: float
    p99: float
    longest: float


def cost(name: str, times: list[float]) -> Cost:
    """Return the cost of what took so many milliseconds each."""
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return Cost(name, len(ordered), statistics.median(ordered), p99, ordered[-1])
