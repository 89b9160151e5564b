"""Which GPUs NVML is no longer asked about, because the kernel log says that they are lost or hang.

Calls about such a GPU block for seconds or for ever, and hold a lock that calls about its neighbours need.
Sampling resumes when the kernel log's finding is over.
"""

from collections.abc import Iterable

from checks.kernel.parse.event import KernelEvent

EXCLUDED_BY = frozenset({("xid", "79"), ("xid", "119"), ("xid", "120"), ("nvrm", "gpu-lost")})
"""Subsystem and code of the events that exclude a GPU (section 6; DCGM then stops every call)."""


def excluded_gpus(events: Iterable[KernelEvent]) -> frozenset[str]:
    """Return the addresses of the GPUs that the open faults of the kernel log exclude from NVML."""
    found = (each.gpu for each in events if (each.subsystem, each.code) in EXCLUDED_BY)
    return frozenset(filter(None, found))
