"""Sift: the one cheap look that every /dev/kmsg record gets, before anything is decoded (section 7).

A kernel text begins with its driver's word (rule K11), so the look is at the beginning of the text only, and
costs the same for any line that is not ours. It goes over a whole block of records at once, which stops only
at those that may matter. The NVIDIA driver's own lines get a second look: it may dump whole tables.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

DUMP, WANTED = 1, 2
"""What a found record is, as the number of its last group, which is its text: one of a driver that also
prints what is no event, one that may be an event."""


class Sift(NamedTuple):
    """How to tell records apart.

    `find` gives those of a block that may matter. `dump` finds what makes the text of a DUMP wanted,
    `anywhere` makes any record so. `countable`: whether a second record with the same text, in one batch, may
    be counted without being read.
    """

    find: Callable[[bytes], Iterator[re.Match[bytes]]]
    dump: Callable[[bytes], object]
    anywhere: bytes
    countable: Callable[[bytes], object]


def begins(dump: bytes, wanted: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a kernel record (K4) whose text begins with the pattern `dump` or `wanted` (K3).

    It begins with the line end before the record, because the engine finds a single byte fastest.
    """
    head = rb"\n[0-7],[0-9]{1,20},[0-9]{1,20},[^;\n]{0,200};"
    return re.compile(rb"%b(?:((?:%b)[^\n]*)|((?:%b)[^\n]*))" % (head, dump, wanted))


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
    rb"us\b(?<=bus)|upport|I(?:nit|DIA| ID)|m_init|GSP(?<=e GSP)|ware|QUIRED|x0{0,6}62|API|xDet|ystem"
    rb"|PU at |Board S|l num|\\x"
)
"""Bytes without which a line of the NVIDIA driver that is no Xid says nothing.

Each begins with a byte that is rare in tables of registers, which saves a third of the time.
"""

_REPEATABLE = re.compile(rb"NVRM: Xid \([^()\n]{0,80}\): (?!0*(?:74|154|162)\b)[0-9]")
"""Xids but for those that decide about others, end them, or are counted over days (74): when the others come
does not matter."""

KERNEL = Sift(_BEGINNINGS.finditer, _DUMP.search, b"libnccl", _REPEATABLE.match)
"""For the kernel log of a GPU node."""
