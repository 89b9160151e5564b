"""Follow the kernel log: /dev/kmsg, or a file that holds its records line by line (rules K1-K8).

Records are identified by sequence number. A gap in the numbers is reported as lost records. At the end of the
log the follower waits for more; while it cannot open the log, it is blind.
"""

import errno
import os
import re
import select
import stat
from pathlib import Path

import msgspec

from checks.kernel.source.prefilter import DUMP, Prefilter
from checks.kernel.source.records import KmsgDevice, KmsgFile, RecordBlock, RecordHeader, read_header

GATHER_SECONDS = 0.01
"""Wait after the device becomes readable, so that a flood is read in batches, not line by line."""

BATCH_LIMIT = 2048
"""Records given to the caller at once (up to one block more), so that it can save and report in between."""

BATCH_BLOCKS = 16
"""Blocks read for the caller at once, for the same reason; equal texts in a batch are counted, not given."""

REOPEN_SECONDS = 5.0
"""Wait before the next attempt to open a log that could not be opened."""

_HEAD = re.compile(rb"\n[0-9]{1,4},([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,200};")


class KernelRecord(msgspec.Struct):
    """A record. `live` is False for what was in the log before the follower caught up with it (K7).

    `count` is the number of records with the same text in one batch; `header` is that of the first.
    """

    header: RecordHeader
    live: bool
    count: int = 1


class KernelLog(msgspec.Struct, frozen=True):
    """Where the log is, how often a plain file is polled, and a descriptor that wakes a waiting reader."""

    path: Path
    poll_seconds: float
    wake: int


class LostRecords(msgspec.Struct, frozen=True):
    """The number of records that were overwritten before they were read (K6)."""

    count: int


class KmsgFollower:
    """Reads a kernel log from its beginning, or from behind the record `after`, and stays at its end.

    `prefilter` says which records are worth giving to the caller; all are read. `last` is the number of the
    last record read. `blind` says why nothing can be read, None while the log is readable.
    """

    def __init__(self, log: KernelLog, prefilter: Prefilter, after: int | None) -> None:
        self.blind: str | None = None
        self.last = after
        self._path = log.path
        self._poll_seconds = log.poll_seconds
        self._wake = log.wake
        self._prefilter = prefilter
        self._repeated: dict[bytes, KernelRecord] = {}
        self._source: KmsgDevice | KmsgFile | None = None
        self._live = False

    def read(self, timeout: float) -> list[KernelRecord | LostRecords]:
        """Return the next records, none when `timeout` seconds or a wake-up passed without any."""
        source = self._source or self._open()
        if source is None:
            self._wait([], min(timeout, REOPEN_SECONDS))
            return []
        try:
            items = self._batch(source)
            if items is None and source.replaced():
                self.close()
            elif items is None:
                self._live = True
                if self._wait(source.waits_on(), min(timeout, source.patience)) == source.waits_on() != []:
                    self._wait([], GATHER_SECONDS)
        except OSError as error:
            self.close()
            self.blind = _reason(self._path, error)
            return []
        return items or []

    def restart(self) -> None:
        """Start again: the log of another boot begins."""
        self.close()
        self.last = None

    def close(self) -> None:
        """Close the log; the next read opens it again and goes on behind the last record."""
        if self._source is not None:
            self._source.close()
        self._source, self._live = None, False

    def _open(self) -> KmsgDevice | KmsgFile | None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.blind = _reason(self._path, error)
            return None
        device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        self._source = (
            KmsgDevice(descriptor, self._path)
            if device
            else KmsgFile(descriptor, self._path, self._poll_seconds)
        )
        self.blind = None
        return self._source

    def _batch(self, source: KmsgDevice | KmsgFile) -> list[KernelRecord | LostRecords] | None:
        """Return the wanted records of a batch, None at the end of the log."""
        items: list[KernelRecord | LostRecords] = []
        self._repeated.clear()
        taken = 0
        try:
            while taken < BATCH_BLOCKS and len(items) < BATCH_LIMIT and (block := source.block()).records:
                taken += 1
                self._take_block(block, items)
        except OSError:
            if not taken:
                raise
        return items if taken else None

    def _take_block(self, block: RecordBlock, items: list[KernelRecord | LostRecords]) -> None:
        """Add what is wanted of a block: all at once when its records are the next ones, else one by one."""
        anywhere = self._prefilter.anywhere
        if anywhere not in block.text and self._is_next(block, items):
            self._select(block.text, items)
            return
        for line in block.text.split(b"\n"):
            record = RecordBlock(b"\n%b\n" % line, 1)
            if not self._is_next(record, items):
                continue
            if anywhere in line:
                self._give(line, line.partition(b";")[2], items)
            else:
                self._select(record.text, items)

    def _is_next(self, block: RecordBlock, items: list[KernelRecord | LostRecords]) -> bool:
        """Whether the block's records are new and without a gap; a gap before them becomes an item."""
        text = block.text
        start = text.rfind(b"\n", 0, -1)
        while text[start + 1 : start + 2] == b" ":
            start = text.rfind(b"\n", 0, start)
        first, last = _HEAD.match(text), _HEAD.match(text, max(start, 0))
        if first is None or last is None:
            return False
        low, high = int(first[1]), int(last[1])
        expected = low if self.last is None else self.last + 1
        if low < expected or high - low + 1 != block.records:
            return False
        if low > expected:
            items.append(LostRecords(low - expected))
        self.last = high
        return True

    def _select(self, block: bytes, items: list[KernelRecord | LostRecords]) -> None:
        dump, repeated = self._prefilter.dump, self._repeated
        for found in self._prefilter.find(block):
            text = found[found.lastindex or 0]
            if found.lastindex == DUMP and not dump(text):
                continue
            first = repeated.get(text)
            if first is None:
                self._give(found[0][1:], text, items)
            else:
                first.count += 1

    def _give(self, raw: bytes, text: bytes, items: list[KernelRecord | LostRecords]) -> None:
        header = read_header(raw)
        if header is None:
            return
        record = KernelRecord(header, self._live)
        items.append(record)
        if self._live and self._prefilter.countable(text):
            self._repeated[text] = record
        else:
            self._repeated.clear()

    def _wait(self, descriptors: list[int], seconds: float) -> list[int]:
        """Wait for one of the descriptors, or the wake-up; return those that can be read."""
        poll = select.poll()
        for descriptor in (*descriptors, self._wake):
            poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]


def _reason(path: Path, error: OSError) -> str:
    match error.errno:
        case errno.EPERM | errno.EACCES:
            return f"{path} may not be read: the agent needs CAP_SYSLOG"
        case errno.ENOENT:
            return f"{path} does not exist: mount the node's /dev"
        case _:
            return f"{path} cannot be read: {error.strerror}"
