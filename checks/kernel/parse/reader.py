"""Parse one kernel text into an event: the driver's word at its beginning chooses who reads it (rule K11).

A quoted Xid deeper in a line is no event, because nobody looks there.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from checks.kernel import nvlink5, nvrm, sxid, xid
from checks.kernel.event import Event, context
from checks.kernel.host import memory, nic, pcie, process, storage
from checks.kernel.pattern import Pattern, first

CLASSIFY_LIMIT = 1024
"""Characters of a text that are looked at (K12)."""

INTERESTING = re.compile(
    rb"Xid|bus\b|by (?:the|open)|PCI|VRM: (?:loading|The|API|memdesc)|RmI|_init_adapter|GSP|ware image"
    rb"|_REQUIRED|x0{0,6}62|be routine|RxDet|RPC hist|h dump|bug-report|GPU (?:at|Board)|vidia|v_get|v_peer"
    rb"|AER|Surprise|SDES|x5_|k (?:is|[Dd]own|DOWN|[Uu]p|UP|status)"
    rb"|EDAC|Hardware E|CMCI|BERT|y error|INFO: task|LOCKUP|kup - CPU|Kernel p|y cgroup|f memory|bnccl"
    rb"|XT[234]-fs|XFS|vme|/raid|md: |Disk f|: server |Linux v"
    rb"|peated|MESSAGE\" ?: ?\[|\x1b|\^\[|\x00|#0|\\x"
)
"""Bytes without which no line is an event; the one cheap look that every line gets (section 7).

One part per subsystem, then wrappers and escapes. The engine skips to the first bytes of the alternatives, so
each begins with a rare byte of its wording (`vidia`, not `nvidia`): 1.2 us a record instead of 10.
"""

_Reader = Callable[[str, int | None], Event | None]


def parse(text: str, branch: int | None) -> Event | None:
    """Return what the kernel text means, None when nobody knows it.

    `branch` is the NVIDIA driver's major version. Never raises, whatever the text; the cost is linear.
    """
    return _parse(text[:CLASSIFY_LIMIT], branch)


# A flood repeats few texts; a cut text bounds what is kept of them to 1 MB.
@lru_cache(maxsize=256)
def _parse(text: str, branch: int | None) -> Event | None:
    for start, read in _READERS:
        if start.match(text):
            event = read(text, branch)
            if event is not None:
                return msgspec.structs.replace(event, text=printable(text))
    return None


def printable(text: str) -> str:
    """Return `text` so that it can be encoded and shown: bad bytes as `\\xNN`, no control characters."""
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return plain if plain.isprintable() else "".join(each if each.isprintable() else " " for each in plain)


def _xid(text: str, branch: int | None) -> Event | None:
    line = xid.read(text)
    if line is None:
        return None
    if line.code in nvlink5.CODES:
        verdict = nvlink5.judge(line.code, line.message, branch)
        return xid.event_of_verdict(line, text, verdict, nvlink5.part(line.message))
    return xid.event(line, text)


def _table(patterns: tuple[Pattern, ...]) -> _Reader:
    return lambda text, _branch: first(patterns, text)


BOOT = "boot"
"""Code of the non-event that begins a boot."""

_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"NVRM: *Xid\b"), _xid),
    (re.compile(r"NVRM:|nvidia[: ]"), lambda text, _: nvrm.parse(text)),
    (re.compile(r"nvidia-nvswitch|SXid"), lambda text, _: sxid.parse(text)),
    (
        re.compile(r"AER: |PCIe Bus Error|[\w-]{1,32} [0-9a-fA-F]{4,8}:"),
        _table(pcie.PATTERNS),
    ),
    (re.compile(r"[a-z]\w{1,31}[: ]"), _table(nic.PATTERNS)),
    (re.compile(r"EDAC|mce:|RAS:|CMCI|BERT:|\{|\[Hardware"), _table(memory.PATTERNS)),
    (
        re.compile(r"EXT|XFS|nvme |block |md|raid|nfs|NFS|lockd|nvidia|nv_"),
        _table(storage.PATTERNS),
    ),
    (re.compile(r"Linux version [0-9]"), lambda _text, _branch: context("kernel", BOOT)),
    (re.compile(r""), _table(process.PATTERNS)),
)
