"""Which GPUs have met an uncorrectable memory error, as the kernel log says, and when last.

Such a GPU's SRAM status is read at once: with a threshold passed, a reset does not mend it (modifier M5).
"""

from collections.abc import Iterable

import msgspec

from checks.kernel.fold import Fault

DOUBTED_BY = frozenset({("xid", "48"), ("xid", "172")})
"""Subsystem and code of what makes a GPU's memory doubtful (M5)."""


class Doubted(msgspec.Struct, frozen=True):
    """GPU address → uptime in seconds of its newest Xid 48 or 172 that still stands."""

    since: dict[str, float] = {}


def doubted(faults: Iterable[Fault]) -> Doubted:
    """Return the GPUs that what stands in the kernel log puts in doubt."""
    since: dict[str, float] = {}
    for fault in faults:
        event = fault.event
        if event.gpu and (event.subsystem, event.code) in DOUBTED_BY:
            since[event.gpu] = max(fault.last_at, since.get(event.gpu, 0.0))
    return Doubted(since)
