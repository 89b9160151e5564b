"""Which GPUs had an uncorrectable memory error according to the kernel log, and when last.

The SRAM status of such a GPU is read at once: past a threshold, a reset does not repair it (modifier M5).
"""

from collections.abc import Iterable

from checks.kernel.faults.fault import OpenFault

SUSPECTED_BY = frozenset({("xid", "48"), ("xid", "172")})
"""Subsystem and code of the events that make a GPU's memory suspect (M5)."""


def memory_suspects(faults: Iterable[OpenFault]) -> dict[str, float]:
    """Return, by GPU address, the uptime in seconds of its newest open Xid 48 or 172."""
    since: dict[str, float] = {}
    for fault in faults:
        event = fault.event
        if event.gpu and (event.subsystem, event.code) in SUSPECTED_BY:
            since[event.gpu] = max(fault.last_at, since.get(event.gpu, 0.0))
    return since
