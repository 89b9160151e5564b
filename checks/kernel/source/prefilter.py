"""The one cheap look that every line gets before anything is decoded (section 7).

A kernel text begins with its driver's word (rule K11), so the look at a /dev/kmsg record goes to the
beginning of its text only, and costs the same for any record that cannot matter. It searches a whole block of
records at once and stops only at those that may matter. The NVIDIA driver's own lines get a second look,
because the driver may dump whole tables of registers.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from checks.kernel.codes.catalog import xids

DUMP, WANTED = 1, 2
"""What kind a found record is, as the number of its last group, which is its text: a text of a driver that
also dumps tables, and a text that may be an event."""


class Prefilter(NamedTuple):
    """How to tell records apart.

    `find` gives the records of a block that may matter. `dump` finds what makes the text of a DUMP wanted,
    `anywhere` makes any record wanted. `countable`: whether a second record with the same text, in one batch,
    may be counted without being read.
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


def _countable() -> re.Pattern[bytes]:
    """Return the pattern of the Xids whose place among other lines does not matter."""
    in_order = "|".join(sorted(row.code for row in xids().values() if row.in_order))
    return re.compile(rb"NVRM: Xid \([^()\n]{0,80}\): (?!0*(?:%b)\b)[0-9]" % in_order.encode())


_BEGINNINGS = begins(
    rb"NVRM: *+(?!Xid)",
    rb"NVRM|nvidia|nv_|SXid|AER|PCIe|EDAC|mce:|RAS|CMCI|BERT|\{|\[Hardware|INFO: task|NMI|watchdog|BUG: "
    rb"|Oops|Internal e|Unable to h|general p|stack s|invalid o|divide e|double f"
    rb"|Kernel panic|Memory cgroup|Out of memory|EXT|XFS|nvme|block|md|raid|nfs|NFS|lockd|Linux version|mlx"
    rb"|bond|Correct|Uncorrect|Multiple|message repeated|\\x|[ \t\x1b\x00^#]"
    # Any driver with a device, any card with a link: possessive, so that other lines fail at once.
    rb"|[\w-]{1,32}+[: ]{1,2}+[0-9a-fA-F]{4,8}:"
    rb"|\w{1,15}+:? (?:\(slave|(?:[\w.-]{1,32}+:? ){0,3}(?:NIC|Copper|Fibre|SerDes|[Ll]ink) )",
)

_DUMP = re.compile(
    rb"us\b(?<=bus)|upport|I(?:nit|DIA| ID)|m_init|GSP(?<=e GSP)|ware|QUIRED|x0{0,6}62|API|xDet|ystem"
    rb"|S_LOST|us ?[:=] ?(?:code )?0x0{0,7}[fF]\b|s reboot|bound to"
    rb"|PU at |Board S|l num|\\x"
)
"""Bytes that a line of the NVIDIA driver needs to say anything, unless it is an Xid.

Each alternative begins with a byte that is rare in tables of registers, which saves a third of the time.
"""

KERNEL = Prefilter(_BEGINNINGS.finditer, _DUMP.search, b"libnccl", _countable().match)
"""For the kernel log of a GPU node."""

INTERESTING = re.compile(
    rb"Xid|bus\b|by (?:the|open)|IDIA open"
    rb"|IS_LOST|us ?[:=] ?(?:code )?0x0{0,7}[fF]\b|ring os reboot|bound to|not called|naccessible"
    rb"|PCI|VRM: (?:loading|The|API|memdesc)|RmI|_init_adapter|GSP|ware image"
    rb"|_REQUIRED|x0{0,6}62|be routine|RxDet|RPC hist|h dump|bug-report|GPU (?:at|Board)|vidia|v_get|v_peer"
    rb"|AER|Surprise|SDES|x5_|k (?:is|[Dd]own|DOWN|[Uu]p|UP|status)"
    rb"|Oops|o handle|NULL p|protection f|nternal err|t segment|d opcode|e error|e fault|DPC"
    rb"|EDAC|Hardware E|CMCI|BERT|y error|INFO: task|LOCKUP|kup - CPU|Kernel p|y cgroup|f memory|bnccl"
    rb"|XT[234]-fs|XFS|vme|/raid|md: |Disk f|: server |Linux v"
    rb"|peated|MESSAGE\" ?: ?\[|\x1b|\^\[|\x00|#0|\\x"
)
"""Bytes that every printed line needs to be an event: what lines get that have a prefix of any form.

One part for each subsystem, then wrappers and escapes. The engine skips to the first bytes of the
alternatives, so each begins with a rare byte of its text (`vidia`, not `nvidia`): 1.2 us a line instead of
10.
"""
