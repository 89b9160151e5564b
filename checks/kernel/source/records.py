"""Records of the kernel log: their header, and where they come from.

Records come from /dev/kmsg or from a file that holds the same records, one a line. Both give blocks of many
records, because one look at a block costs a fraction of a look at each record. In a block, a line end stands
before every record, and a record's dictionary is further lines that begin with a blank.
"""

import errno
import os
import re
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

KERNEL_FACILITY = 0
"""Syslog facility of the kernel; what users write to /dev/kmsg always has another one (K4)."""

RECORD_LIMIT = 65_536
"""Bytes of one read; the kernel's own limit for a record with its dictionary is 8 kB."""

BLOCK_RECORDS = 2048
"""Records in a block from a device: about 200 kB."""

SKIP_LIMIT = 16
"""Reads in a row that may fail before the device is opened again."""

LINE_LIMIT = 65_536
"""Bytes of a line that are kept at least; a kernel text itself needs 1 kB (K12), a journal entry more."""

IDLE_SECONDS = 1.0
"""Silence of a pipe after which its reader is told, so that nothing waits for the next line."""

_BLOCK_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 18


class RecordHeader(msgspec.Struct, frozen=True):
    """What stands before the first `;` of a /dev/kmsg record (K3). `usec` is microseconds since boot."""

    priority: int
    sequence: int
    usec: int
    text: bytes


def read_header(record: bytes) -> RecordHeader | None:
    """Return the first line of a /dev/kmsg record, its escapes undone (K5); None for other text."""
    match = _HEADER.match(record)
    if match is None:
        return None
    text = record[match.end() :].partition(b"\n")[0]
    if b"\\x" in text:
        text = clean(_ESCAPE.sub(lambda escape: bytes((int(escape[1], 16),)), text))
    return RecordHeader(int(match[1]), int(match[2]), int(match[3]), text)


def clean(raw: bytes) -> bytes:
    """Return `raw` without colours, NUL and line ends (K12); colours may stand inside a driver's word."""
    if b"\x1b" in raw or b"^[" in raw:
        raw = _ANSI.sub(b"", raw)
    return raw.replace(b"\x00", b"").removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").replace(b"\r", b"")


class RecordBlock(NamedTuple):
    """A number of records in one text; none when there is nothing to read now."""

    text: bytes = b""
    records: int = 0


class KmsgDevice:
    """/dev/kmsg: one record a read, readable when there is one."""

    patience = 3600.0

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def block(self) -> RecordBlock:
        """Return the records that there are now; raises OSError when the device has to be opened again."""
        read, descriptor = os.read, self._descriptor
        found, skipped = [b"\n"], 0
        for _ in range(BLOCK_RECORDS):
            try:
                record = read(descriptor, RECORD_LIMIT)
            except BlockingIOError:
                break
            except OSError as error:
                # What was read before counts; the next read meets an error that lasts.
                if len(found) > 1:
                    break
                # EPIPE: overwritten under us, the next read gives the oldest record there is. EINVAL: a
                # record longer than the buffer. Both show as a gap in the sequence (K6).
                skipped += 1
                if error.errno not in (errno.EPIPE, errno.EINVAL) or skipped > SKIP_LIMIT:
                    raise
                continue
            if not record:
                raise OSError(errno.ENODATA, "it has ended", self._path)
            found.append(record)
        return RecordBlock(b"".join(found), len(found) - 1)

    def replaced(self) -> bool:
        """Return False: a device stays the same."""
        return False

    def waits_on(self) -> list[int]:
        """Return what becomes readable when there is more."""
        return [self._descriptor]

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class KmsgFile:
    """A file with the same records, appended line by line; a file that replaces it is read from its start."""

    def __init__(self, descriptor: int, path: Path, poll_seconds: float) -> None:
        self.patience = poll_seconds
        self._descriptor = descriptor
        self._path = path
        self._rest = b""

    def block(self) -> RecordBlock:
        """Return the whole lines of what can be read at once; a line without an end waits for it."""
        while chunk := os.read(self._descriptor, _BLOCK_BYTES):
            whole, end, rest = (self._rest + chunk).rpartition(b"\n")
            self._rest = rest[:RECORD_LIMIT]
            text = b"\n" + whole + end
            if end and (records := text.count(b"\n") - 1 - text.count(b"\n ")):
                return RecordBlock(text, records)
        return RecordBlock()

    def replaced(self) -> bool:
        """Whether another file has this name now, or this one is shorter; raises OSError without a file."""
        mine, now = os.fstat(self._descriptor), self._path.stat()
        read = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        return (mine.st_dev, mine.st_ino) != (now.st_dev, now.st_ino) or now.st_size < read

    def waits_on(self) -> list[int]:
        """Return nothing: a file is always readable, so its reader looks again after a pause."""
        return []

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


def lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield the lines that `descriptor` gives, without line ends; None once when a pipe falls silent.

    Lines may have any length and number; memory stays constant.
    """
    waits = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    rest, idle = b"", True
    while True:
        if waits and not select.select([descriptor], [], [], None if idle else IDLE_SECONDS)[0]:
            idle = True
            yield None
            continue
        idle = False
        chunk = _read(descriptor)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        rest = rest[:LINE_LIMIT]
    if rest:
        yield rest


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK_BYTES)
        except BrokenPipeError:
            # /dev/kmsg overwrote records before they were read; the next read goes on.
            continue


_HEADER = re.compile(rb"(\d{1,4}),(\d{1,20}),(\d{1,20}),[^;\n]{0,200};")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_ANSI = re.compile(
    rb"(?:\x1b|\^\[)(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|\x1b[@-Z\\^_]?"
)
