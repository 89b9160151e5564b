"""Follow the kernel log: /dev/kmsg itself, or a file that holds its records line by line (rules K1-K8).

A record is known by its sequence number. A gap in the numbers is told as lost records, an end of the log is
waited out, a log that cannot be opened makes the follower blind until it can.
"""

import errno
import os
import select
import stat
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from checks.kernel.line import Header, read_header
from checks.kernel.sift import DUMP, FOREIGN, PLAIN, WANTED, Sift

RECORD_LIMIT = 65_536
"""Bytes of one read; the kernel's own limit of a record with its dictionary is 8 kB."""

GATHER_SECONDS = 0.01
"""Wait after a device has woken us, so that a flood is read in batches, not line by line."""

BATCH_LIMIT = 2048
"""Records given to the caller at once, so that it can save and report in between."""

REOPEN_SECONDS = 5.0
"""Wait before another try to open a log that could not be opened."""

SKIP_LIMIT = 16
"""Reads in a row that may fail before the device is opened again."""

_FILE_CHUNK = 1 << 17


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
        self._source: _Device | _File | None = None
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

    def _open(self) -> "_Device | _File | None":
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.blind = _reason(self._path, error)
            return None
        device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
        self._source = (
            _Device(descriptor, self._path) if device else _File(descriptor, self._path, self._poll_seconds)
        )
        self.blind = None
        return self._source

    def _take(self, source: "_Device | _File") -> list[Record | Lost] | None:
        """Return the wanted records of a batch, None at the end of the log."""
        look, dump, anywhere, _ = self._sift
        items: list[Record | Lost] = []
        self._repeated.clear()
        taken, expected = False, None if self.last is None else self.last + 1
        try:
            for head in filter(None, map(look, islice(source.records(), BATCH_LIMIT))):
                taken = True
                kind = head.lastindex
                sequence = int(head[FOREIGN if kind == FOREIGN else 1])
                if sequence != expected and expected is not None:
                    if sequence < expected:
                        continue
                    items.append(Lost(sequence - expected))
                expected = sequence + 1
                raw = head.string
                if kind == WANTED or (kind == PLAIN and anywhere in raw) or (kind == DUMP and dump(raw)):
                    self._note(raw, items)
        except OSError:
            # What was read before counts; a trouble that lasts is met again by the next read.
            if not taken:
                raise
        self.last = None if expected is None else expected - 1
        return items if taken else None

    def _note(self, raw: bytes, items: list[Record | Lost]) -> None:
        text = raw.partition(b";")[2]
        first = self._repeated.get(text)
        if first is not None:
            first.count += 1
            return
        header = read_header(raw)
        if header is None:
            return
        record = Record(header, self._live)
        items.append(record)
        if self._live and self._sift.countable(raw):
            self._repeated[text] = record
        else:
            self._repeated.clear()

    def _wait(self, descriptors: list[int], seconds: float) -> list[int]:
        """Wait for one of the descriptors, or the wake-up; return those that can be read."""
        poll = select.poll()
        for descriptor in (*descriptors, self._wake):
            poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]


class _Device:
    """/dev/kmsg: one record a read, readable when there is one."""

    patience = 3600.0

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def records(self) -> Iterator[bytes]:
        """Yield the records there are now; raises OSError when the device has to be opened again."""
        skipped = 0
        while True:
            try:
                record = os.read(self._descriptor, RECORD_LIMIT)
            except BlockingIOError:
                return
            except OSError as error:
                # EPIPE: overwritten under us, the next read gives the oldest record there is. EINVAL: a
                # record longer than the buffer. Both show as a gap in the sequence (K6).
                skipped += 1
                if error.errno not in (errno.EPIPE, errno.EINVAL) or skipped > SKIP_LIMIT:
                    raise
                continue
            if not record:
                raise OSError(errno.ENODATA, "it has ended", self._path)
            skipped = 0
            yield record

    def replaced(self) -> bool:
        """Return False: a device stays the same."""
        return False

    def waits_on(self) -> list[int]:
        """Return what becomes readable when there is more."""
        return [self._descriptor]

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


class _File:
    """A file with the same records, appended line by line; when replaced it is read from its start."""

    def __init__(self, descriptor: int, path: Path, poll_seconds: float) -> None:
        self.patience = poll_seconds
        self._descriptor = descriptor
        self._path = path
        self._lines: deque[bytes] = deque()
        self._rest = b""

    def records(self) -> Iterator[bytes]:
        """Yield the whole lines there are now; a line without an end waits for it."""
        while True:
            while self._lines:
                yield self._lines.popleft()
            chunk = os.read(self._descriptor, _FILE_CHUNK)
            if not chunk:
                return
            *whole, rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(whole)
            self._rest = rest[:RECORD_LIMIT]

    def replaced(self) -> bool:
        """Whether another file has this name now, or this one became shorter; raises OSError without any."""
        mine, now = os.fstat(self._descriptor), self._path.stat()
        read = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        return (mine.st_dev, mine.st_ino) != (now.st_dev, now.st_ino) or now.st_size < read

    def waits_on(self) -> list[int]:
        """Return nothing: a file is always readable, so it is looked at after a pause."""
        return []

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


def _reason(path: Path, error: OSError) -> str:
    match error.errno:
        case errno.EPERM | errno.EACCES:
            return f"{path} may not be read: the agent needs CAP_SYSLOG"
        case errno.ENOENT:
            return f"{path} does not exist: mount the node's /dev"
        case _:
            return f"{path} cannot be read: {error.strerror}"
