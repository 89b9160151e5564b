"""The guard: how many nodes of a pool may be in repair at once (safety rule 6). Pure.

The controller asks it before a repair starts; a refused repair waits, and its status says why.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoCapacity:
    """The pool cannot spare the node now; the repair stays pending."""

    reason: str


def budget(pool_size: int, percent: int) -> int:
    """Return how many nodes of a pool may be in repair at once: `percent` of it, at least one."""
    return max(1, pool_size * percent // 100)


def fleet_can_spare(
    node: str, pool: Iterable[str], in_repair: Iterable[str], percent: int
) -> NoCapacity | None:
    """Return why the repair of `node` must wait, None if it may start.

    `pool` are the nodes of its pool, `in_repair` the nodes with a running repair. A node that is in repair
    already is within the budget.
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
