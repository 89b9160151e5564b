"""The fleet's brake: how many nodes of a pool may be in repair at once. Pure.

Asked before a repair takes its first lock; what it refuses waits and says so where people look.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoCapacity:
    """The fleet cannot spare the node now; the repair stays pending."""

    reason: str


def budget(pool_size: int, percent: int) -> int:
    """Return how many nodes of a pool may be in repair at once: `percent` of it, at least one (rule 6)."""
    return max(1, pool_size * percent // 100)


def fleet_can_spare(
    node: str, pool: Iterable[str], in_repair: Iterable[str], percent: int
) -> NoCapacity | None:
    """Return why `node` must wait, None when it may go out of service.

    `pool` are the nodes of its pool, `in_repair` the nodes that run a repair now. A node that is in repair
    already needs no new room.
    """
    members = set(pool)
    busy = members & set(in_repair)
    allowed = budget(len(members), percent)
    if node in busy or len(busy) < allowed:
        return None
    names = ", ".join(sorted(busy))
    return NoCapacity(
        f"waits: {len(busy)} of {len(members)} nodes of the pool are in repair ({names}), {allowed} allowed"
    )
