"""One open fault: how further lines count, what their number and rate mean, and its finding."""

import msgspec

from checks.finding import EVIDENCE_LIMIT, Finding, Severity
from checks.kernel.codes.catalog import kernel_codes
from checks.kernel.faults import judgement, relations
from checks.kernel.faults.relations import Recurrence
from checks.kernel.parse.event import KernelEvent, KernelVerdict

LINES_KEPT = 32
"""Line numbers kept of one fault: the first ones and the last."""


class ErrorRate(msgspec.Struct):
    """How often a fault occurs that is harmless unless that is too often.

    `began` is when the span that is being counted began, `count` what it has so far. `streak` is how many
    spans before it had too many in a row, as a negative number how many had not.
    """

    began: float
    count: int = 0
    streak: int = 0

    def add(self, number: int, rule: Recurrence, at: float) -> bool:
        """Count `number` occurrences at `at`; return whether there are too many, and have been for long."""
        self._pass(rule, at)
        self.count += number
        return self.streak >= rule.spans

    def is_calm(self, rule: Recurrence, at: float) -> bool:
        """Whether there have not been too many for as long, at `at`."""
        self._pass(rule, at)
        return self.streak <= -rule.spans

    def _pass(self, rule: Recurrence, at: float) -> None:
        passed = int((at - self.began) // rule.span_seconds)
        if passed <= 0:
            return
        fast = self.count > rule.times
        self.streak = max(self.streak, 0) + 1 if fast else min(self.streak, 0) - 1
        if passed > 1:
            self.streak = min(self.streak, 0) - (passed - 1)
        self.began += passed * rule.span_seconds
        self.count = 0


class OpenFault(msgspec.Struct):
    """An open fault: its event, as judged when it entered, and the seconds of its first and last line.

    `first_shown` and `last_shown` are the same moments by the wall clock: shown, never compared. `evidence`
    is the verdict that NVML's findings give it while they stand. `recent` are the times of its newest
    occurrences where those are counted, `rate` is how often they come. `unechoed` counts those whose second
    line is to come (negative: whose first line is).
    """

    event: KernelEvent
    first_at: float
    last_at: float
    recent: list[float] = []
    unechoed: int = 0
    first_shown: float = 0.0
    last_shown: float = 0.0
    rate: ErrorRate | None = None
    evidence: KernelVerdict | None = None

    def finding(self) -> Finding:
        """Return the finding that the fault is on a node."""
        event, verdict = self.event, self.evidence or self.event
        return Finding(
            check=event.subsystem,
            subsystem=event.subsystem,
            code=event.code or "",
            severity=verdict.severity,
            action=verdict.action,
            gpu=event.gpu,
            device=event.device,
            count=event.count,
            first_seen=self.first_shown,
            last_seen=self.last_shown,
            summary=event.summary,
            evidence=event.text[:EVIDENCE_LIMIT],
        )


def calmed(fault: OpenFault, at: float) -> KernelEvent:
    """Return the event of a fault with its own verdict again once its rate has been harmless for long."""
    event, rule = fault.event, relations.RECURRENCES.get(fault.event.kind)
    if (
        fault.rate is None
        or rule is None
        or event.rule != rule.verdict.rule
        or not fault.rate.is_calm(rule, at)
    ):
        return event
    row = kernel_codes()[event.code or ""]
    own = KernelVerdict(row.severity, row.action, f"3.7 {row.code}")
    return msgspec.structs.replace(
        event.judged(own), summary=event.summary.replace(rule.summary, row.summary)
    )


def recur(fault: OpenFault, rule: Recurrence, number: int, at: float) -> None:
    """Count `number` more occurrences of a fault; give it the verdict of their number or rate."""
    if rule.counted == "rate":
        fault.rate = fault.rate or ErrorRate(at)
        if fault.rate.add(number, rule, at):
            summary = fault.event.summary.replace(
                kernel_codes()[fault.event.code or ""].summary, rule.summary
            )
            fault.event = msgspec.structs.replace(fault.event.judged(rule.verdict), summary=summary)
    elif rule.counted == "fault":
        fault.recent = (fault.recent + [at] * min(number, rule.times))[-rule.times :]
        often = len(fault.recent) == rule.times and fault.recent[-1] - fault.recent[0] <= rule.span_seconds
        if often and fault.event.severity is Severity.WARNING:
            fault.event = fault.event.judged(rule.verdict)


def pending(event: KernelEvent) -> int:
    """Return what the event adds to `OpenFault.unechoed`."""
    return -event.count if event.echo else event.count


def merged(old: KernelEvent, new: KernelEvent, number: int) -> KernelEvent:
    """Return both as one: counts add up, and `judgement.supersedes` says whose verdict stays."""
    both = msgspec.structs.replace(
        old, count=old.count + number, lines=joined_lines(old, new), text=_evidence_of(old.text, new.text)
    )
    if new.companion_of and not old.companion_of:
        both = msgspec.structs.replace(both, companion_of=new.companion_of)
    if new.gpu and not old.gpu:
        both = msgspec.structs.replace(both, gpu=new.gpu, device=None, summary=new.summary)
    if judgement.supersedes(new, old):
        both = msgspec.structs.replace(both.judged(new.verdict), summary=new.summary)
    return both


def _evidence_of(old: str, new: str) -> str:
    if len(old) >= EVIDENCE_LIMIT or old.endswith(new):
        return old
    return f"{old}\n{new}"[:EVIDENCE_LIMIT]


def joined_lines(one: KernelEvent, other: KernelEvent) -> tuple[int, ...]:
    """Return the line numbers of both, at most `LINES_KEPT`."""
    if len(one.lines) >= LINES_KEPT:
        return (*one.lines[: LINES_KEPT - 1], *other.lines[-1:])
    return (one.lines + other.lines)[:LINES_KEPT]
