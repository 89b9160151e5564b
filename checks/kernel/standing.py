"""Standing: what the kernel log says is wrong now, from events as they are read to findings as they are told.

Puts together the fold (one fault, one event), what ends a fault, and what other witnesses change about its
verdict when it is told.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from checks.finding import Action, Finding, Severity
from checks.kernel import clearing, companion
from checks.kernel.event import Event, Verdict, to_finding
from checks.kernel.fold import Fault, Fold
from checks.kernel.jobs import Trail, Visit

HANGS = frozenset({"119", "120"})
"""Xids of a firmware processor that stopped; with a driver that hangs too, no reset gets through (M6)."""

_REBOOT = Verdict(Severity.CRITICAL, Action.REBOOT, "M6 driver unresponsive")


class Standing:
    """The open faults of one node in one boot. Times are seconds since boot, `shown` by the wall clock."""

    def __init__(self, faults: Iterable[Fault] = (), visits: tuple[Visit, ...] = ()) -> None:
        self._fold = Fold()
        self._trail = Trail(visits)
        for fault in faults:
            self._fold.restore(fault)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Everything open, to be saved."""
        return tuple(self._fold)

    @property
    def visits(self) -> tuple[Visit, ...]:
        """The application faults of the last day, to be saved."""
        return self._trail.visits

    @property
    def events(self) -> Iterator[Event]:
        """What is open."""
        return (fault.event for fault in self._fold)

    def take(self, event: Event, at: float, shown: float) -> tuple[bool, list[Event]]:
        """Take in one event; return whether a finding came of it, and the events that it ended."""
        ended: list[Fault] = []
        if clearing.is_good_news(event):
            ended = self._fold.drop(partial(_ends, event))
        is_fault = clearing.is_fault(event)
        if is_fault:
            self._fold.add(self._trail.judge(event, at), at, shown)
        return is_fault, [fault.event for fault in ended]

    def expire(self, at: float) -> bool:
        """Drop what quiet has ended; return whether there was any."""
        return bool(self._fold.drop(lambda fault: _is_over(fault, at)))

    def findings(self, witnesses: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the findings; `witnesses` are those of the checks, some of which decide about others."""
        return tuple(
            to_finding(_witnessed(fault.event, witnesses), fault.first_shown, fault.last_shown)
            for fault in self._fold
        )


def _witnessed(event: Event, witnesses: Sequence[Finding]) -> Event:
    """Return the event as it is judged beside what NVML says (M1 by field 230, M6)."""
    if event.subsystem != "xid":
        return event
    for each in witnesses:
        if each.code == "recovery-action":
            event = companion.decided(event, _wish(each))
    if event.code in HANGS and any(_hangs(each) for each in witnesses):
        return event.judged(_REBOOT)
    return event


def _wish(finding: Finding) -> Event:
    """Return what the driver asks for through NVML as the Xid that would say the same."""
    severity, action = finding.severity, finding.action
    return Event(
        code="154", subsystem="xid", gpu=finding.gpu, severity=severity, action=action, rule="field 230"
    )


def _hangs(finding: Finding) -> bool:
    return finding.code == "driver-unresponsive" and finding.severity is Severity.CRITICAL


def _ends(news: Event, fault: Fault) -> bool:
    return clearing.ends(news, fault.event)


def _is_over(fault: Fault, at: float) -> bool:
    quiet = clearing.quiet_seconds(fault.event)
    return quiet is not None and at - fault.last_at >= quiet
