"""Open faults: events about one fault become one with a count, however many lines tell of it (K19).

Holds what is open on one node in one boot. Times are seconds on a clock that does not jump; the caller says
what the time of a line is and when a fault is over.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count

import msgspec

from checks.finding import Finding
from checks.kernel.faults import judgement, relations
from checks.kernel.faults.fault import OpenFault, calmed, joined_lines, merged, pending, recur
from checks.kernel.faults.judgement import Mark
from checks.kernel.faults.relations import WINDOW_SECONDS
from checks.kernel.parse.event import KernelEvent

OPEN_LIMIT = 4096
"""Faults held open at once; beyond it the one that has been quiet longest is closed."""

ECHO_SECONDS = 2.0
"""How long after a line the second line about the same occurrence may come (AER, driver start)."""

Key = tuple[str, str, str, str]
"""Identity of a fault, `KernelEvent.key`."""


class OpenFaults:
    """The open faults of one node, by key, the one that has been quiet longest first."""

    def __init__(self) -> None:
        self._open: dict[Key, OpenFault] = {}
        self._index = _FaultIndex()
        self._evidence: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[OpenFault]:
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def add(self, event: KernelEvent, at: float, shown: float = 0.0) -> None:
        """Take in one more event that was logged at `at` seconds, `shown` by the wall clock."""
        if event.kind in _ABSORBING and self._absorb(event, at):
            return
        fault, number = self._open.get(event.key), event.count
        if fault is None and event.echo:
            fault = self._echoed(event, at)
        if fault is None:
            fault = OpenFault(event, at, at, unechoed=pending(event), first_shown=shown)
            self._insert(fault)
            self._relate(fault, at)
        else:
            before = fault.event.rule
            number = self._count(fault, event, at)
            if event.kind in relations.RELATED_AGAIN:
                self._relate(fault, at)
                if fault.event.rule != before:
                    self._follow(fault)
            else:
                self._decide(fault, at)
        fault.last_shown = shown
        rule = relations.RECURRENCES.get(event.kind)
        if rule is not None:
            recur(fault, rule, number, at)
        if self._evidence:
            self._apply_evidence(fault)

    def restore(self, fault: OpenFault) -> None:
        """Put back a fault that was open before a restart."""
        self._insert(fault)
        self._apply_evidence(fault)

    def take_evidence(self, findings: Iterable[Finding]) -> None:
        """Take in what the checks find now: some of it changes verdicts while it stands."""
        evidence = tuple(each for each in findings if each.code in relations.EVIDENCE_CODES)
        if evidence != self._evidence:
            self._evidence = evidence
            for fault in self:
                self._apply_evidence(fault)

    def change(self, judge: Callable[[OpenFault], KernelEvent]) -> bool:
        """Give each fault the event that `judge` makes of it; return whether any changed."""
        changed = False
        for fault in self:
            event = judge(fault)
            if event != fault.event:
                fault.event, changed = event, True
                self._apply_evidence(fault)
        return changed

    def calm(self, at: float) -> bool:
        """Give faults whose rate has been harmless for long their own verdict back; return whether any."""
        rated = any(fault.rate for fault in self._open.values())
        return rated and self.change(lambda fault: calmed(fault, at))

    def expire(self, at: float) -> list[OpenFault]:
        """Close what has been quiet for the window at `at`, and what exceeds `OPEN_LIMIT`."""
        closed: list[OpenFault] = []
        for fault in self._open.values():
            if abs(at - fault.last_at) <= WINDOW_SECONDS and len(self._open) - len(closed) <= OPEN_LIMIT:
                break
            closed.append(fault)
        return self._close(closed)

    def drop(self, over: Callable[[OpenFault], bool]) -> list[OpenFault]:
        """Close the faults that are over."""
        closed = [fault for fault in self._open.values() if over(fault)]
        return self._close(closed) if closed else []

    def _close(self, faults: list[OpenFault]) -> list[OpenFault]:
        for fault in faults:
            self._remove(fault)
        return sorted(faults, key=lambda fault: (fault.event.lines[:1], fault.first_at))

    def _insert(self, fault: OpenFault) -> None:
        self._open[fault.event.key] = fault
        self._index.put(fault.event)

    def _remove(self, fault: OpenFault) -> None:
        del self._open[fault.event.key]
        self._index.remove(fault.event)

    def _echoed(self, event: KernelEvent, at: float) -> OpenFault | None:
        """Return the fault of another key that `event` is the second line about, if there is one."""
        near = self._near([event.kind], at, ECHO_SECONDS)
        return next((each for each in near if each.unechoed and not (event.gpu and each.event.gpu)), None)

    def _count(self, fault: OpenFault, event: KernelEvent, at: float) -> int:
        """Add a further line to its fault; return the number of occurrences that it adds."""
        self._remove(fault)
        # The two lines about one occurrence come in either order; the second is not counted.
        second = fault.unechoed > 0 if event.echo else fault.unechoed < 0
        number = 0 if second else event.count
        fault.last_at = max(at, fault.last_at)
        fault.unechoed += pending(event)
        fault.event = merged(fault.event, event, number)
        self._insert(fault)
        return number

    def _absorb(self, event: KernelEvent, at: float) -> bool:
        """Make texts about one lost GPU one event; return whether `event` is done with."""
        for fault in self._near(judgement.relatives(event), at, relations.INCIDENT_SECONDS):
            if judgement.absorbs(fault.event, event):
                fault.event = msgspec.structs.replace(fault.event, lines=joined_lines(fault.event, event))
                return True
            if judgement.absorbs(event, fault.event):
                self._remove(fault)
                if event.key in self._open:
                    return False
                fault.event = msgspec.structs.replace(event, lines=joined_lines(fault.event, event))
                fault.last_at = max(at, fault.last_at)
                self._insert(fault)
                self._decide(fault, fault.first_at)
                self._decide(fault, at)
                self._apply_evidence(fault)
                return True
        return False

    def _relate(self, newest: OpenFault, at: float) -> None:
        """Relate a fault to the others near it, in both directions."""
        for other in self._near(judgement.relatives(newest.event), at, relations.INCIDENT_SECONDS):
            if other is not newest:
                apart = abs(at - other.last_at)
                newest.event = judgement.beside(newest.event, other.event, apart)
                other.event = judgement.beside(other.event, newest.event, apart)
                self._apply_evidence(other)

    def _decide(self, fault: OpenFault, at: float) -> None:
        """Let a recovery action that was named just before a further line of a fault decide about it (M1)."""
        decision = self._open.get((*relations.RECOVERY_ACTION, fault.event.gpu or "", ""))
        if decision is not None and abs(at - decision.last_at) <= relations.DECISION_SECONDS:
            event = judgement.decided(fault.event, decision.event)
            fault.event = event if event.rule in relations.SETTLED else fault.event

    def _follow(self, decision: OpenFault) -> None:
        """Let faults that a recovery action has decided follow it when the driver changes its mind (M1)."""
        for key in self._index.find([(decision.event.gpu or "",)]):
            fault = self._open[key]
            if fault is not decision and fault.event.rule in relations.SETTLED:
                event = judgement.decided(fault.event, decision.event)
                fault.event = event if event.rule in relations.SETTLED else fault.event

    def _apply_evidence(self, fault: OpenFault) -> None:
        fault.evidence = judgement.by_evidence(fault.event, self._evidence) if self._evidence else None

    def _near(self, marks: Iterable[Mark], at: float, seconds: float) -> list[OpenFault]:
        """Return the faults under the marks that have a line within `seconds` of `at`, the newest first."""
        found = map(self._open.__getitem__, self._index.find(marks))
        return [fault for fault in found if abs(at - fault.last_at) <= seconds]


class _FaultIndex:
    """Keys of faults by mark, each with its turn: the later it was put in, the higher.

    It finds what may relate to an event without a look at all the others.
    """

    def __init__(self) -> None:
        self._turns = count()
        self._marked: defaultdict[Mark, dict[Key, int]] = defaultdict(dict)

    def put(self, event: KernelEvent) -> None:
        turn = next(self._turns)
        for mark in judgement.marks(event):
            self._marked[mark][event.key] = turn

    def remove(self, event: KernelEvent) -> None:
        for mark in judgement.marks(event):
            keys = self._marked[mark]
            del keys[event.key]
            if not keys:
                del self._marked[mark]

    def find(self, marks: Iterable[Mark]) -> list[Key]:
        """Return the keys under any of the marks, the newest first."""
        turns: dict[Key, int] = {}
        for mark in marks:
            turns.update(self._marked.get(mark, {}))
        return sorted(turns, key=turns.__getitem__, reverse=True)


_ABSORBING = frozenset({*relations.ABSORBED, *relations.ABSORBED.values()})
