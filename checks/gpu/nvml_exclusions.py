"""Which GPUs NVML is not asked about any more, because the kernel log says that they are lost or hang.

Calls to such a GPU block for seconds or for ever, and hold a lock that calls to its neighbours need. It is
asked again when the kernel log's finding is over.
"""

from collections.abc import Iterable

import msgspec

from checks.kernel.event import Event

SILENCED_BY = frozenset({("xid", "79"), ("xid", "119"), ("xid", "120"), ("nvrm", "gpu-lost")})
"""Subsystem and code of what stops NVML for a GPU (section 6; DCGM then stops every call)."""


class LeaveAlone(msgspec.Struct, frozen=True):
    """Addresses of the GPUs that are to be left alone."""

    gpus: frozenset[str] = frozenset()


def leave_alone(events: Iterable[Event]) -> LeaveAlone:
    """Return the GPUs that what stands in the kernel log puts out of NVML's reach."""
    found = (each.gpu for each in events if (each.subsystem, each.code) in SILENCED_BY)
    return LeaveAlone(frozenset(filter(None, found)))
