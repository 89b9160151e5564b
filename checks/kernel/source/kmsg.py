"""Follow the kernel log: /dev/kmsg itself, or a file that holds its records line by line (rules K1-K8).

A record is known by its sequence number. A gap in the numbers is told as lost records, an end of the log is
waited out, a log that cannot be opened makes the follower blind until it can.
"""

import errno
import os
import re
import select
import stat
from pathlib import Path

import msgspec

from checks.kernel.line import Header, read_header
from checks.kernel.records import Block, Device, File
from checks.kernel.sift import DUMP, Sift

GATHER_SECONDS = 0.01
"""Wait after a device has woken us, so that a flood is read in batches, not line by line."""

BATCH_LIMIT = 2048
"""Records given to the caller at once, or a block more, so that it can save and report in between."""

BATCH_BLOCKS = 16
"""Blocks read for the caller at once, for the same reason; a batch counts repeated texts for it."""

REOPEN_SECONDS = 5.0
"""Wait before another try to open a log that could not be opened."""

_HEAD = re.compile(rb"\n[0-9]{1,4},([0-9]{1,20}),[0-9]{1,20},[^;\n]{0,200};")


class Record(msgspec.Struct):
    """A record. `live` is False for what was in the log before the follower caught up with it (K7).

    `count` is how many with the same text there were in one batch; `header` is that of the first.
    """

    header: Header
    live: bool
    count: int = 1


class Log(msgspec.Struct, frozen=True):
    """Where the log is, how often a plain file is looked at, a descriptor that wakes a waiting reader."""

    path: Path
    poll_seconds: float
    wake: int


class Lost(msgspec.Struct, frozen=True):
    """So many records were overwritten before they were read (K6)."""

    count: int


class Follower:
    """Reads a kernel log from its beginning, or from behind the record `after`, and stays at its end.

    `sift` says which records are worth giving to the caller; all are read. `last` is the number of the last
    one read, `blind` says why nothing can be read, None while all is well.
    """

    def __init__(self, log: Log, sift: Sift, after: int | None) -> None:
        self.blind: str | None = None
        self.last = after
        self._path = log.path
        self._poll_seconds = log.poll_seconds
        self._wake = log.wake
        self._sift = sift
        self._repeated: dict[bytes, Record] = {}
        self._source: Device | File | None = None
        self._live = False

    def read(self, timeout: float) -> list[Record | Lost]:
        """Return the next records, none when `timeout` seconds or a wake-up passed without any."""
        source = self._source or self._open()
        if source is None:
            self._wait([], min(timeout, REOPEN_SECONDS))
            return []
        try:
            items = self._take(source)
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
        """Forget what was read: the log of another boot begins."""
        self.close()
        self.last = None

    def close(self) -> None:
        """Close the log; the next read opens it again and goes on behind the last record."""
        if self._source is not None:
            self._source.close()
        self._source, self._live = None, False

    def _open(self) -> Device | File | None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.blind = _reason(self._path, error)
            return None
        device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        self._source = (
            Device(descriptor, self._path) if device else File(descriptor, self._path, self._poll_seconds)
        )
        self.blind = None
        return self._source

    def _take(self, source: Device | File) -> list[Record | Lost] | None:
        """Return the wanted records of a batch, None at the end of the log."""
        items: list[Record | Lost] = []
        self._repeated.clear()
        taken = 0
        try:
            while taken < BATCH_BLOCKS and len(items) < BATCH_LIMIT and (block := source.block()).records:
                taken += 1
                self._sort(block, items)
        except OSError:
            if not taken:
                raise
        return items if taken else None

    def _sort(self, block: Block, items: list[Record | Lost]) -> None:
        """Pick from a block what is wanted; at once if its records are the next ones, else one by one."""
        anywhere = self._sift.anywhere
        if anywhere not in block.text and self._goes_on(block, items):
            self._pick(block.text, items)
            return
        for line in block.text.split(b"\n"):
            record = Block(b"\n%b\n" % line, 1)
            if not self._goes_on(record, items):
                continue
            if anywhere in line:
                self._note(line, line.partition(b";")[2], items)
            else:
                self._pick(record.text, items)

    def _goes_on(self, block: Block, items: list[Record | Lost]) -> bool:
        """Whether the block's records are new and without a gap; a gap before them is told."""
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
            items.append(Lost(low - expected))
        self.last = high
        return True

    def _pick(self, block: bytes, items: list[Record | Lost]) -> None:
        dump, repeated = self._sift.dump, self._repeated
        for found in self._sift.find(block):
            text = found[found.lastindex or 0]
            if found.lastindex == DUMP and not dump(text):
                continue
            first = repeated.get(text)
            if first is None:
                self._note(found[0][1:], text, items)
            else:
                first.count += 1

    def _note(self, raw: bytes, text: bytes, items: list[Record | Lost]) -> None:
        header = read_header(raw)
        if header is None:
            return
        record = Record(header, self._live)
        items.append(record)
        if self._live and self._sift.countable(text):
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
