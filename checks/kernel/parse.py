"""Parse one kernel text into an event: the driver's word at its beginning chooses who reads it (rule K11).

A quoted Xid deeper in a line is no event, because nobody looks there.
"""

import re
from collections.abc import Callable

from checks.kernel import nvlink5, nvrm, sxid, xid
from checks.kernel.event import Event, context
from checks.kernel.host import memory, nic, pcie, process, storage
from checks.kernel.pattern import first

CLASSIFY_LIMIT = 1024
"""Characters of a text that are looked at (K12)."""

INTERESTING = re.compile(
    rb"NVRM|nvswitch|SXid|AER|PCIe|Surprise|mlx5|[Ll]ink|EDAC|Hardware|hardware|CMCI|BERT|INFO: task|LOCKUP|lockup|"
    rb"panic|memory|segfault|trap|EXT[234]-fs|XFS \(|nvme|md/|md: |raid|not responding|server|peermem|nv_peer_mem|"
    rb"nv_get_p2p|nvidia|Linux version|repeated|\x1b|\x00|#0|\\x"
)
"""Bytes without which no line is an event; the one cheap look that every line gets (section 7)."""

_BOOT = re.compile(r"Linux version [0-9]")


def parse(text: str, branch: int | None) -> Event | None:
    """Return what the kernel text means, None when nobody knows it. `branch` is the NVIDIA driver's major version.

    Never raises, whatever the text; the cost is linear in its length.
    """
    text = text[:CLASSIFY_LIMIT]
    for start, read in _READERS:
        if start.match(text):
            event = read(text, branch)
            if event is not None:
                return event
    return None


def _xid(text: str, branch: int | None) -> Event | None:
    line = xid.read(text)
    if line is None:
        return None
    if line.code in nvlink5.CODES:
        verdict = nvlink5.judge(line.code, line.message, branch)
        return xid.event_of_verdict(line, text, verdict, nvlink5.part(line.message))
    return xid.event(line, text)


def _boot(_text: str, _branch: int | None) -> Event | None:
    return context("kernel", BOOT)


BOOT = "boot"
"""Code of the non-event that begins a boot."""

_Reader = Callable[[str, int | None], Event | None]

_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"NVRM: *Xid\b"), _xid),
    (re.compile(r"NVRM:|nvidia[: ]"), lambda text, _: nvrm.parse(text)),
    (re.compile(r"nvidia-nvswitch|SXid"), lambda text, _: sxid.parse(text)),
    (
        re.compile(r"AER: |PCIe Bus Error|[\w-]{1,32} [0-9a-fA-F]{4,8}:"),
        lambda text, _: first(pcie.PATTERNS, text),
    ),
    (re.compile(r"[a-z]\w{1,31}[: ]"), lambda text, _: first(nic.PATTERNS, text)),
    (re.compile(r"EDAC|mce:|RAS:|CMCI|BERT:|\{|\[Hardware"), lambda text, _: first(memory.PATTERNS, text)),
    (
        re.compile(r"EXT|XFS|nvme |block |md|raid|nfs|NFS|lockd|nvidia|nv_"),
        lambda text, _: first(storage.PATTERNS, text),
    ),
    (re.compile(r"Linux version "), _boot),
    (re.compile(r""), lambda text, _: first(process.PATTERNS, text)),
)
