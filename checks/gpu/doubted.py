"""Which GPUs have met an uncorrectable memory error, as the kernel log says, and when last.

Such a GPU's SRAM status is read at once: with a threshold passed, a reset does not mend it (modifier M5).
"""

import msgspec

DOUBTED_BY = frozenset({("xid", "48"), ("xid", "172")})
"""Subsystem and code of what makes a GPU's memory doubtful (M5)."""


class Doubted(msgspec.Struct, frozen=True):
    """GPU address → uptime in seconds of its newest Xid 48 or 172 that still stands."""

    since: dict[str, float] = {}
