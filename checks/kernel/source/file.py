"""Records: where a kernel log's records come from, /dev/kmsg itself or a file that holds them line by line.

Both give them in blocks, many at a time, because a look at a block costs a fraction of a look at each record.
In a block every record begins behind a line end; a record's dictionary is further lines, led by a blank.
"""

import errno
import os
from pathlib import Path
from typing import NamedTuple

RECORD_LIMIT = 65_536
"""Bytes of one read; the kernel's own limit of a record with its dictionary is 8 kB."""

BLOCK_RECORDS = 2048
"""Records in a block from a device: about 200 kB."""

SKIP_LIMIT = 16
"""Reads in a row that may fail before the device is opened again."""

_CHUNK = 1 << 16


class Block(NamedTuple):
    """So many records in one text; none at all when there is nothing to read now."""

    text: bytes = b""
    records: int = 0


class Device:
    """/dev/kmsg: one record a read, readable when there is one."""

    patience = 3600.0

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    def block(self) -> Block:
        """Return the records there are now; raises OSError when the device has to be opened again."""
        read, descriptor = os.read, self._descriptor
        found, skipped = [b"\n"], 0
        for _ in range(BLOCK_RECORDS):
            try:
                record = read(descriptor, RECORD_LIMIT)
            except BlockingIOError:
                break
            except OSError as error:
                # What was read before counts; a trouble that lasts is met again by the next read.
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
        return Block(b"".join(found), len(found) - 1)

    def replaced(self) -> bool:
        """Return False: a device stays the same."""
        return False

    def waits_on(self) -> list[int]:
        """Return what becomes readable when there is more."""
        return [self._descriptor]

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


class File:
    """A file with the same records, appended line by line; when replaced it is read from its start."""

    def __init__(self, descriptor: int, path: Path, poll_seconds: float) -> None:
        self.patience = poll_seconds
        self._descriptor = descriptor
        self._path = path
        self._rest = b""

    def block(self) -> Block:
        """Return the whole lines of what can be read at once; a line without an end waits for it."""
        while chunk := os.read(self._descriptor, _CHUNK):
            whole, end, rest = (self._rest + chunk).rpartition(b"\n")
            self._rest = rest[:RECORD_LIMIT]
            text = b"\n" + whole + end
            if end and (records := text.count(b"\n") - 1 - text.count(b"\n ")):
                return Block(text, records)
        return Block()

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
