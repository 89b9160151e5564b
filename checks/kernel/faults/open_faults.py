"""Fold: events about one fault become one event with a count, however many lines tell of it (rule K19).

Holds what is open on one node in one boot. Times are seconds on any one clock that does not jump; the caller
says what the time of a line is and when a fault is over.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from checks.finding import EVIDENCE_LIMIT, Severity
from checks.kernel import companion
from checks.kernel.event import Event
from checks.kernel.host import pcie, process
from checks.kernel.kin import Key, Kin, Mark, kind
from checks.kernel.pace import Pace

WINDOW_SECONDS = 600.0
"""A fault stays open this long after its last line (K19)."""

OPEN_LIMIT = 4096
"""Faults held open at once; beyond it the one that has been quiet longest is closed."""

ECHO_SECONDS = 2.0
"""How long after a line its second line about the same occurrence may come (AER, driver start)."""

_RELATED_ANEW = frozenset({"154", "soft-lockup", "mlx5-cmd-timeout"})
"""What a later line of may mean something else for its neighbours than the first did."""

LINES_KEPT = 32
"""Line numbers kept of one fault: the first ones and the last."""


class Fault(msgspec.Struct):
    """An open fault: what is known of it, and the seconds of its first and last line.

    `first_shown` and `last_shown` are the same moments by the wall clock: shown, never compared.
    `recent` are the times of its newest occurrences, `unechoed` counts those whose second line is to come
    (negative: whose first line is). `pace` is kept of what is harmless unless it happens often.
    """

    event: Event
    first_at: float
    last_at: float
    recent: list[float] = []
    unechoed: int = 0
    first_shown: float = 0.0
    last_shown: float = 0.0
    pace: Pace | None = None


class Fold:
    """The open faults of one node, by key, the one that has been quiet longest first."""

    def __init__(self) -> None:
        self._open: dict[Key, Fault] = {}
        self._kin = Kin()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def add(self, event: Event, at: float, shown: float = 0.0) -> None:
        """Take in one more event that was logged at `at` seconds, `shown` by the wall clock."""
        if event.code in ("79", "gpu-lost") and self._absorb(event, at):
            return
        fault, before = self._same(event, at), 0
        if fault is None:
            recent = [at] * min(event.count, process.SOFT_LOCKUPS)
            fault = Fault(event, at, at, recent, _pending(event), shown)
            self._insert(fault)
            self._relate(fault, at)
        else:
            before = fault.event.count
            self._count(fault, event, at)
            if event.code in _RELATED_ANEW:
                self._relate(fault, at)
        fault.last_shown = shown
        if event.code == "soft-lockup":
            fault.event = _lockup(fault)
        elif event.code == "aer-corrected":
            _keep_pace(fault, fault.event.count - before, at)

    def restore(self, fault: Fault) -> None:
        """Put back a fault that was open before a restart."""
        self._insert(fault)

    def expire(self, at: float) -> list[Fault]:
        """Close what has been quiet for the window at `at`, and what exceeds `OPEN_LIMIT`."""
        closed: list[Fault] = []
        for fault in self._open.values():
            if abs(at - fault.last_at) <= WINDOW_SECONDS and len(self._open) - len(closed) <= OPEN_LIMIT:
                break
            closed.append(fault)
        return self._close(closed)

    def calm(self, at: float) -> bool:
        """Judge anew what was judged for its rate and is slow again; return whether there was any."""
        slow = [
            fault for fault in self if pcie.is_often(fault.event) and fault.pace and fault.pace.is_calm(at)
        ]
        for fault in slow:
            fault.event = pcie.seldom(fault.event)
        return bool(slow)

    def drop(self, over: Callable[[Fault], bool]) -> list[Fault]:
        """Close the faults that are over."""
        return self._close([fault for fault in self._open.values() if over(fault)])

    def _close(self, faults: list[Fault]) -> list[Fault]:
        for fault in faults:
            self._remove(fault)
        return sorted(faults, key=lambda fault: (fault.event.lines[:1], fault.first_at))

    def _insert(self, fault: Fault) -> None:
        self._open[fault.event.key] = fault
        self._kin.put(fault.event)

    def _remove(self, fault: Fault) -> None:
        del self._open[fault.event.key]
        self._kin.remove(fault.event)

    def _same(self, event: Event, at: float) -> Fault | None:
        """Return the open fault that `event` is about, if there is one."""
        fault = self._open.get(event.key)
        if fault is None and event.echo:
            near = self._near([kind(event)], at, ECHO_SECONDS)
            fault = next((each for each in near if each.unechoed and _echoes(event, each.event)), None)
        return fault

    def _count(self, fault: Fault, event: Event, at: float) -> None:
        self._remove(fault)
        # The two lines about one occurrence come in either order; the second is not counted.
        second = fault.unechoed > 0 if event.echo else fault.unechoed < 0
        count = 0 if second else event.count
        fault.last_at = max(at, fault.last_at)
        if event.code == "soft-lockup":
            fault.recent = (fault.recent + [at] * min(count, process.SOFT_LOCKUPS))[-process.SOFT_LOCKUPS :]
        fault.unechoed += _pending(event)
        fault.event = _merge(fault.event, event, count)
        self._insert(fault)

    def _absorb(self, event: Event, at: float) -> bool:
        """Let an Xid 79 and other lines about one lost GPU be one event; say whether `event` is done."""
        for fault in self._near(companion.relatives(event), at, companion.INCIDENT_SECONDS):
            if companion.absorbs(fault.event, event):
                fault.event = msgspec.structs.replace(fault.event, lines=_lines(fault.event, event))
                return True
            if companion.absorbs(event, fault.event):
                self._remove(fault)
                if event.key in self._open:
                    return False
                fault.event = msgspec.structs.replace(event, lines=_lines(fault.event, event))
                fault.last_at = max(at, fault.last_at)
                self._insert(fault)
                return True
        return False

    def _relate(self, newest: Fault, at: float) -> None:
        for other in self._near(companion.relatives(newest.event), at, companion.INCIDENT_SECONDS):
            if other is newest:
                continue
            near = abs(at - other.last_at) <= companion.DECISION_SECONDS
            if near and newest.event.code == "154":
                other.event = companion.decided(other.event, newest.event)
            if near and other.event.code == "154":
                newest.event = companion.decided(newest.event, other.event)
            if near or other.event.subsystem != "xid" or newest.event.subsystem != "xid":
                newest.event = companion.joined(newest.event, other.event)
                other.event = companion.joined(other.event, newest.event)

    def _near(self, marks: Iterable[Mark], at: float, seconds: float) -> list[Fault]:
        """Return the faults under the marks that have a line within `seconds` of `at`, the newest first."""
        found = map(self._open.__getitem__, self._kin.find(marks))
        return [fault for fault in found if abs(at - fault.last_at) <= seconds]


def _pending(event: Event) -> int:
    return -event.count if event.echo else event.count


def _echoes(event: Event, other: Event) -> bool:
    return (event.subsystem, event.code) == (other.subsystem, other.code) and not (event.gpu and other.gpu)


def _merge(old: Event, new: Event, count: int) -> Event:
    """Return both as one: counts add up, the worse verdict stays, of an Xid 154 the newer one."""
    merged = msgspec.structs.replace(
        old, count=old.count + count, lines=_lines(old, new), text=_evidence(old.text, new.text)
    )
    if new.companion_of and not old.companion_of:
        merged = msgspec.structs.replace(merged, companion_of=new.companion_of)
    if new.gpu and not old.gpu:
        merged = msgspec.structs.replace(merged, gpu=new.gpu, device=None, summary=new.summary)
    if _decides(new, old):
        merged = msgspec.structs.replace(merged.judged(new.verdict), summary=new.summary)
    return merged


def _decides(new: Event, old: Event) -> bool:
    if (new.severity, new.action) == (old.severity, old.action) and new.code != "154":
        return False
    if old.verdict == companion.WEDGED:
        return False
    return new.code == "154" or new.verdict.rank > old.verdict.rank


def _evidence(old: str, new: str) -> str:
    if len(old) >= EVIDENCE_LIMIT or old.endswith(new):
        return old
    return f"{old}\n{new}"[:EVIDENCE_LIMIT]


def _lines(one: Event, other: Event) -> tuple[int, ...]:
    if len(one.lines) >= LINES_KEPT:
        return (*one.lines[: LINES_KEPT - 1], *other.lines[-1:])
    return (one.lines + other.lines)[:LINES_KEPT]


def _lockup(fault: Fault) -> Event:
    event, times = fault.event, fault.recent
    if event.severity is not Severity.WARNING or len(times) < process.SOFT_LOCKUPS:
        return event
    close = times[-1] - times[0] <= process.SOFT_LOCKUP_SECONDS
    return event.judged(process.REPEATED_LOCKUP) if close else event


def _keep_pace(fault: Fault, count: int, at: float) -> None:
    if fault.pace is None:
        fault.pace = Pace(at)
    if fault.pace.add(count, at):
        fault.event = pcie.often(fault.event)
