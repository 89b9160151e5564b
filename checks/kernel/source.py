"""Lines out of a file or a pipe, of any length and number, in constant memory."""

import os
import select
import stat
from collections.abc import Iterator

LINE_LIMIT = 65_536
"""Bytes of a line that are kept at least; a kernel text itself needs 1 kB (K12), a journal entry more."""

IDLE_SECONDS = 1.0
"""Silence of a pipe after which its reader is told, so that nothing waits for the next line."""

_CHUNK = 1 << 18


def lines(descriptor: int) -> Iterator[bytes | None]:
    """Yield the lines that `descriptor` gives, without line ends; None once when a pipe falls silent."""
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
            return os.read(descriptor, _CHUNK)
        except BrokenPipeError:
            # /dev/kmsg says so when records were overwritten before they were read; the next read goes on.
            continue
