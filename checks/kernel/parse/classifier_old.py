"""Classify: any kernel log, line by line, becomes events; what `clusterwright classify` and the agent share.

`Reader` knows what a line needs of the lines before it: texts broken over lines, /dev/kmsg dictionaries, the
driver's version. `Classifier` adds the folding, for a log whose lines carry their own times.
"""

from collections.abc import Iterator

import msgspec

from checks.kernel import nvrm
from checks.kernel.event import Event
from checks.kernel.fold import Fold
from checks.kernel.host import memory
from checks.kernel.join import Join
from checks.kernel.line import Line, read_line
from checks.kernel.parse import BOOT, INTERESTING, parse


class Reader:
    """Turns the lines of one node's kernel log into events, one at a time, in order.

    `branch` is the NVIDIA driver's major version, taken from its banner when the log has one.
    """

    def __init__(self, branch: int | None = None) -> None:
        self.branch = branch
        self._join = Join()
        self._in_record = False

    def read(self, raw: bytes, number: int, now: float) -> tuple[Line, list[Event]] | None:
        """Return the line and its events, None when it has nothing to say; `number` counts lines from 1."""
        if self._in_record and raw[:1] == b" ":
            return None
        self._in_record = b";" in raw[:256] and raw[:1].isdigit()
        if INTERESTING.search(raw) is None:
            return None
        line = read_line(raw, now)
        return (line, self.events(line, number)) if line else None

    def events(self, line: Line, number: int) -> list[Event]:
        """Return what a line says; non-events of known lines are among them."""
        found = []
        for place, text in enumerate(line.texts):
            whole = self._join.feed(text, number, indented=line.indented or place > 0)
            if whole is None:
                continue
            event = self._parse(whole[0], line)
            if event is not None:
                found.append(msgspec.structs.replace(event, lines=whole[1], count=event.count * line.count))
        return found

    def _parse(self, text: str, line: Line) -> Event | None:
        self.branch = nvrm.branch(text) or self.branch
        event = parse(text, self.branch)
        return None if event is None else memory.before_boot(event, line.uptime)


class Classifier:
    """Folds the events of a whole log. Memory is bounded by the faults of ten minutes, not by the log.

    A line without a stamp counts as logged when the line before it was.
    """

    def __init__(
        self, branch: int | None = None, since: float | None = None, boot_at: float | None = None
    ) -> None:
        self._reader = Reader(branch)
        self._fold = Fold()
        self._since = since
        self._boot_at = boot_at
        self._at = 0.0

    def feed(self, raw: bytes, number: int, now: float) -> Iterator[Event]:
        """Take in one line; yield non-events at once and the events of faults that are over."""
        read = self._reader.read(raw, number, now)
        if read is None:
            return
        line, events = read
        stamp = line.wall if line.wall is not None else line.uptime
        self._at = self._at if stamp is None else stamp
        if self._too_old(line):
            return
        yield from (fault.event for fault in self._fold.expire(self._at))
        for event in events:
            if event.code == BOOT:
                yield from self.finish()
            if event.event:
                self._fold.add(event, self._at)
            else:
                yield event

    def finish(self) -> Iterator[Event]:
        """Yield what is still open; more lines may follow."""
        yield from (fault.event for fault in self._fold.drop(lambda _fault: True))

    def _too_old(self, line: Line) -> bool:
        if self._since is None:
            return False
        wall = line.wall
        if wall is None and line.uptime is not None and self._boot_at is not None:
            wall = self._boot_at + line.uptime
        return wall is not None and wall < self._since
