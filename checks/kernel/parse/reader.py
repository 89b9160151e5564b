"""Read one node's kernel log: lines become events, one at a time, in order.

The driver's word at the beginning of a text chooses the table that reads it (rule K11): nobody looks for a
quoted Xid deeper in a line. The reader keeps what a line needs of the lines before it: texts that are broken
over lines, /dev/kmsg dictionaries, the version of the NVIDIA driver.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from checks.kernel.parse import machine, network, nvlink, nvrm, storage, xid
from checks.kernel.parse.event import KernelEvent, Wording, context, first
from checks.kernel.source.line import KernelLine, read_line
from checks.kernel.source.prefilter import INTERESTING
from checks.kernel.source.unfold import RecordUnfolder

CLASSIFY_LIMIT = 1024
"""Characters of a text that are looked at (K12)."""

BOOT = "boot"
"""Code of the non-event that begins a boot."""


class KernelLogReader:
    """Turns the lines of one node's kernel log into events.

    `branch` is the NVIDIA driver's major version, taken from its banner when the log has one. `has_text` and
    `has_kernel_line` say what `read` has met so far.
    """

    def __init__(self, branch: int | None = None) -> None:
        self.branch = branch
        self._reassembly = nvrm.Reassembly()
        self._in_record = False
        self._unfolder = RecordUnfolder()
        self.has_text = False
        self.has_kernel_line = False

    def read(self, raw: bytes, number: int, now: float) -> tuple[KernelLine, list[KernelEvent]] | None:
        """Return the line and its events, None when it says nothing; `number` counts lines from 1."""
        if self._in_record and raw[:1] == b" ":
            return None
        unfolded = self._unfolder.feed(raw)
        return None if unfolded is None else self._read(unfolded, number, now)

    def finish(self, number: int, now: float) -> tuple[KernelLine, list[KernelEvent]] | None:
        """Return what a last record without an end says, None when it says nothing."""
        raw = self._unfolder.finish()
        return None if raw is None else self._read(raw, number, now)

    def _read(self, raw: bytes, number: int, now: float) -> tuple[KernelLine, list[KernelEvent]] | None:
        self._in_record = b";" in raw[:256] and raw[:1].isdigit()
        if INTERESTING.search(raw) is None:
            if not self.has_kernel_line and raw.strip():
                self.has_text = True
                self.has_kernel_line = _is_kernel_line(raw, read_line(raw, now))
            return None
        self.has_text = True
        line = read_line(raw, now)
        if line is None:
            return None
        events = self.events(line, number)
        self.has_kernel_line = self.has_kernel_line or bool(events) or _is_kernel_line(raw, line)
        return line, events

    def events(self, line: KernelLine, number: int) -> list[KernelEvent]:
        """Return what a line says; non-events of known lines are among them."""
        found = []
        at = line.uptime if line.uptime is not None else line.wall
        for place, text in enumerate(line.texts):
            whole = self._reassembly.feed(text, number, at, indented=line.indented or place > 0)
            if whole is None:
                continue
            if whole[0].startswith(nvrm.BANNER):
                self.branch = nvrm.branch(whole[0]) or self.branch
            event = parse(whole[0], self.branch)
            if event is not None:
                if line.uptime is not None and line.uptime < machine.BOOT_LEFTOVER_SECONDS:
                    event = machine.before_boot(event)
                found.append(
                    msgspec.structs.replace(
                        event, lines=whole[1], count=event.count * line.count, host=line.host
                    )
                )
        return found


def _is_kernel_line(raw: bytes, line: KernelLine | None) -> bool:
    """Whether the prefix of a line proves that the kernel wrote it; any text may have no prefix at all."""
    return line is not None and (line.uptime is not None or line.wall is not None or b"kernel:" in raw)


def parse(text: str, branch: int | None) -> KernelEvent | None:
    """Return what the kernel text means, None when it is not known.

    `branch` is the NVIDIA driver's major version. Never raises, whatever the text; the cost is linear.
    """
    return _parse(text[:CLASSIFY_LIMIT], branch)


# A flood repeats few texts; the limit of a text bounds what is kept of them to 1 MB.
@lru_cache(maxsize=256)
def _parse(text: str, branch: int | None) -> KernelEvent | None:
    for start, read in _READERS:
        if start.match(text):
            event = read(text, branch)
            if event is not None:
                plain = text.isascii() and text.isprintable()
                return msgspec.structs.replace(event, text=text if plain else printable(text))
    return None


def printable(text: str) -> str:
    """Return `text` in a form that can be encoded and shown: bad bytes as `\\xNN`, no control characters."""
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return plain if plain.isprintable() else "".join(each if each.isprintable() else " " for each in plain)


_TextReader = Callable[[str, int | None], KernelEvent | None]


def _table(wordings: tuple[Wording, ...]) -> _TextReader:
    return lambda text, _branch: first(wordings, text)


_READERS: tuple[tuple[re.Pattern[str], _TextReader], ...] = (
    (re.compile(r"NVRM: *Xid\b"), xid.parse),
    (re.compile(r"NVRM:|nvidia[: ]"), _table(nvrm.WORDINGS)),
    (re.compile(r"nvidia-nvswitch|SXid"), nvlink.parse_sxid),
    (re.compile(r"AER: |PCIe Bus Error|[\w-]{1,32} [0-9a-fA-F]{4,8}:"), _table(machine.PCIE)),
    (re.compile(r"[a-z]\w{1,31}[: ]"), _table(network.WORDINGS)),
    (re.compile(r"EDAC|mce:|RAS:|CMCI|BERT:|\{|\[Hardware"), _table(machine.MACHINE_CHECKS)),
    (re.compile(r"EXT|XFS|nvme |block |md|raid|nfs|NFS|lockd|nvidia|nv_"), _table(storage.WORDINGS)),
    (re.compile(r"Linux version [0-9]"), lambda _text, _branch: context("kernel", BOOT)),
    (re.compile(r""), _table(machine.TASKS)),
)
