"""Sift: the one cheap look that every /dev/kmsg record gets, before anything is decoded (section 7).

A kernel text begins with its driver's word (rule K11), so the look is at the beginning of the text only, and
costs the same for any line that is not ours. The NVIDIA driver's own lines get a second one: it may dump
whole tables. Nearly all of a flood ends here, in about one microsecond a record.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Sift(NamedTuple):
    """What to do with a record whose text starts at an offset.

    `wanted`: whether it may be an event. `countable`: whether a second one with the same text in one batch
    may be counted without being read, because the order of the two does not matter.
    """

    wanted: Callable[[bytes, int], object]
    countable: Callable[[bytes, int], object]


HEAD = re.compile(rb"(?:[0-7]|([0-9]{1,4})),([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,200};")
"""Head of a record: group 1 is the priority when it is not the kernel's (K4), group 2 the sequence (K3)."""

_BEGINNINGS = re.compile(
    rb"(NVRM: *(?!Xid))|NVRM|nvidia|nv_|SXid|AER|PCIe|EDAC|mce:|RAS|CMCI|BERT|\{|\[Hardware|INFO: task|NMI"
    rb"|watchdog|BUG: soft|Kernel panic|Memory cgroup|Out of memory|EXT|XFS|nvme|block|md|raid|nfs|NFS|lockd"
    rb"|Linux version|mlx|bond|Correct|Uncorrect|Multiple|message repeated|\\x|[ \t\x1b\x00^#]"
    rb"|[\w-]{1,32}:? ?[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:|\w{1,24}: [^\n]{0,64}?[Ll]ink"
)
"""How a kernel text begins that a table may know; the last row is any driver's device, or its link."""

_NVIDIA = re.compile(
    rb"bus|support|init|GSP|firmware|REQUIRED|x0{0,6}62|probe|API|RxDet|loading|GPU [aB]|The NV|PCI|\\x"
)
"""Bytes without which a line of the NVIDIA driver that is no Xid says nothing."""

_REPEATABLE = re.compile(rb"NVRM: Xid \([^()\n]{0,80}\): (?!0*(?:154|162)\b)[0-9]")
"""Xids but for those that decide about others or end them (M1, section 4)."""


def wanted(record: bytes, start: int) -> bool:
    """Whether the text at `start` may be an event, or part of one."""
    found = _BEGINNINGS.match(record, start)
    if found is None:
        return b"libnccl" in record
    return found[1] is None or _NVIDIA.search(record, start) is not None


KERNEL = Sift(wanted, _REPEATABLE.match)
"""For the kernel log of a GPU node."""
