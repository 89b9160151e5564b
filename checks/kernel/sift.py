"""Sift: the one cheap look that every /dev/kmsg record gets, before anything is decoded (section 7).

A kernel text begins with its driver's word (rule K11), so the look is at the beginning of the text only, and
costs the same for any line that is not ours. The NVIDIA driver's own lines get a second one: it may dump
whole tables. Nearly all of a flood ends here, in less than two microseconds a record with its reading.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

PLAIN, DUMP, WANTED, FOREIGN = 1, 2, 3, 4
"""What a record is, as the number of the last group that matched: nobody's text, a text of a driver that also
prints what is no event, a text that may be an event, a record that the kernel did not write (K4)."""


class Sift(NamedTuple):
    """How to tell records apart.

    `look` matches the head of a record and the first word of its text; the last group says what it is, and
    groups 1 and 4 are the sequence. `dump` finds what makes a DUMP wanted, `anywhere` makes any record so.
    `countable`: whether a second record with the same text, in one batch, may be counted without being read.
    """

    look: Callable[[bytes], re.Match[bytes] | None]
    dump: Callable[[bytes], object]
    anywhere: bytes
    countable: Callable[[bytes], object]


def begins(dump: bytes, wanted: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a record whose text may begin with the pattern `dump` or `wanted` (K3)."""
    rest = rb",[0-9]{1,20},[^;\n]{0,200};"
    return re.compile(
        rb"[0-7],([0-9]{1,20})%b(?:(%b)|(%b))?|[0-9]{1,4},([0-9]{1,20})%b" % (rest, dump, wanted, rest)
    )


_BEGINNINGS = begins(
    rb"NVRM: *+(?!Xid)",
    rb"NVRM|nvidia|nv_|SXid|AER|PCIe|EDAC|mce:|RAS|CMCI|BERT|\{|\[Hardware|INFO: task|NMI|watchdog|BUG: soft"
    rb"|Kernel panic|Memory cgroup|Out of memory|EXT|XFS|nvme|block|md|raid|nfs|NFS|lockd|Linux version|mlx"
    rb"|bond|Correct|Uncorrect|Multiple|message repeated|\\x|[ \t\x1b\x00^#]"
    # Any driver with a device, any card with a link: possessive, so that other lines fail at once.
    rb"|[\w-]{1,32}+[: ]{1,2}+[0-9a-fA-F]{4,8}:"
    rb"|\w{1,15}+:? (?:\(slave|(?:[\w.-]{1,32}+:? ){0,3}(?:NIC|Copper|Fibre|SerDes|[Ll]ink) )",
)

_DUMP = re.compile(
    rb"bus|support|Init|init|firmware|REQUIRED|x0{0,6}62|probe|API|RxDet|loading|The NV|installed|PCI ID|\\x"
    rb"|GPU at |Board S|serial num"
)
"""Bytes without which a line of the NVIDIA driver that is no Xid says nothing."""

_REPEATABLE = re.compile(rb"[^;\n]*;NVRM: Xid \([^()\n]{0,80}\): (?!0*(?:74|154|162)\b)[0-9]")
"""Xids but for those that decide about others, end them, or are counted over days (74): when the others come
does not matter."""

KERNEL = Sift(_BEGINNINGS.match, _DUMP.search, b"libnccl", _REPEATABLE.match)
"""For the kernel log of a GPU node."""
