"""Judge events by the table in `relations`: beside other events, NVML's findings and good news."""

from collections.abc import Sequence

import msgspec

from checks.finding import Action, Finding, Severity
from checks.kernel.codes.catalog import xids
from checks.kernel.faults import relations
from checks.kernel.parse.event import KernelEvent, KernelVerdict
from checks.kernel.parse.xid import RECOVERY_NONE

Mark = tuple[str, ...]
"""Where events that may be related are found: a kind (two words) or a GPU (one)."""


def marks(event: KernelEvent) -> tuple[Mark, ...]:
    """Return the marks that the event is found under."""
    return (event.kind, (event.gpu,)) if event.gpu else (event.kind,)


def relatives(event: KernelEvent) -> tuple[Mark, ...]:
    """Return the marks of every event that can relate to `event`."""
    kinds = _RELATED.get(event.kind, ())
    return (*kinds, (event.gpu,)) if event.gpu else kinds


def absorbs(one: KernelEvent, other: KernelEvent) -> bool:
    """Whether `other` is the same fault as `one` and becomes one event with it (K17)."""
    return relations.ABSORBED.get(other.kind) == one.kind and one.gpu is not None and one.gpu == other.gpu


def beside(event: KernelEvent, other: KernelEvent, apart: float) -> KernelEvent:
    """Return what `event` becomes because `other` was logged `apart` seconds from it, a minute at most.

    A companion keeps its own verdict (M3) but for a recovery action (M1) and for what `relations` says of a
    pair.
    """
    if apart <= relations.DECISION_SECONDS and other.kind == relations.RECOVERY_ACTION:
        event = decided(event, other)
    relation = relations.RELATIONS.get((event.kind, other.kind))
    if relation is not None and relation.verdict is not None and not relation.joins:
        return event.judged(relation.verdict)
    if event.companion_of is not None or other.companion_of == event.code:
        return event
    if relation is None:
        joins = apart <= relations.DECISION_SECONDS and _is_xid_companion(event, other)
        return msgspec.structs.replace(event, companion_of=other.code) if joins else event
    child = msgspec.structs.replace(event, companion_of=other.code)
    if relation.verdict is not None:
        return child.judged(relation.verdict)
    return msgspec.structs.replace(child, action=other.action) if relation.takes_action else child


def decided(event: KernelEvent, decision: KernelEvent) -> KernelEvent:
    """Return `event` as the recovery action that the driver named near it leaves it (M1)."""
    if decision.gpu is None or decision.gpu != event.gpu:
        return event
    if decision.rule == RECOVERY_NONE.rule:
        return needs_nothing(event)
    verdict = relations.REPLACEMENTS.get(decision.rule)
    if verdict is None or verdict.rule == event.rule or not _is_replaceable(event):
        return event
    # A companion has its own verdict (M3), but asks for no more than the driver does for the GPU.
    if event.companion_of and not (verdict.rule in relations.SETTLED and _is_lighter(verdict, event)):
        return event
    return event.judged(verdict)


def needs_nothing(event: KernelEvent) -> KernelEvent:
    """Return `event` as it is once the driver says, after it, that its GPU needs nothing (M1).

    That ends no fault, and changes only what a job can have caused.
    """
    if event.kind not in relations.LOWERED_BY_NONE or event.companion_of is not None:
        return event
    return event.judged(relations.NOT_NEEDED)


def supersedes(new: KernelEvent, old: KernelEvent) -> bool:
    """Whether the verdict of a fault's further line replaces that of the fault: the worse one, in general."""
    if new.kind == relations.RECOVERY_ACTION:
        return True
    if old.rule in relations.SETTLED and new.rule not in relations.FINAL:
        return False
    if (new.severity, new.action) == (old.severity, old.action):
        return False
    return new.verdict.rank > old.verdict.rank


def by_evidence(event: KernelEvent, findings: Sequence[Finding]) -> KernelVerdict | None:
    """Return the verdict that the checks' findings give `event`, None when they change none (M1, M5, M6)."""
    verdict = None
    for rule in relations.EVIDENCE:
        for finding in findings:
            if finding.code != rule.finding or finding.severity not in rule.severities:
                continue
            if rule.same_gpu and (finding.gpu is None or finding.gpu != event.gpu):
                continue
            if rule.verdict is not None:
                verdict = rule.verdict if event.kind in rule.kinds else verdict
            elif (
                finding.severity is not Severity.UNKNOWN and not event.companion_of and _is_replaceable(event)
            ):
                verdict = KernelVerdict(finding.severity, finding.action, "M1 field 230")
    return verdict


def is_all_clear(event: KernelEvent) -> bool:
    """Whether the event is a recovery action of None."""
    return event.kind == relations.RECOVERY_ACTION and event.rule == RECOVERY_NONE.rule


def is_good(news: KernelEvent) -> bool:
    """Whether `news`, one of `relations.CLEARS`, ends anything: of recovery actions, only None does."""
    return news.kind != relations.RECOVERY_ACTION or is_all_clear(news)


def ends(news: KernelEvent, event: KernelEvent) -> bool:
    """Whether good news ends the fault that `event` is."""
    ended, same = relations.CLEARS[news.kind]
    if ended is None:
        return event.subsystem == news.subsystem and event.gpu == news.gpu is not None
    return event.kind == ended and getattr(event, same) == getattr(news, same)


def quiet_seconds(event: KernelEvent) -> float | None:
    """Return the quiet after which the fault is over, None when quiet alone never ends it (section 4)."""
    if event.severity in (Severity.INFO, Severity.APP):
        return relations.BRIEF_QUIET_SECONDS
    if event.severity is Severity.WARNING and event.action is Action.NONE:
        return None if event.kind in relations.NEVER_QUIET else relations.QUIET_SECONDS
    return None


def _is_replaceable(event: KernelEvent) -> bool:
    if event.subsystem != "xid" or event.kind in relations.NOT_REPLACED or event.rule in relations.FINAL:
        return False
    if event.severity is not Severity.INFO:
        return True
    row = xids().get(event.code or "")
    return row is not None and row.judged_by == "sub-code"


def _is_lighter(verdict: KernelVerdict, event: KernelEvent) -> bool:
    return verdict.action.rank < event.action.rank


def _is_xid_companion(event: KernelEvent, other: KernelEvent) -> bool:
    if event.subsystem != "xid" or other.subsystem != "xid" or event.gpu is None or event.gpu != other.gpu:
        return False
    row = xids().get(event.code or "")
    if row is None or other.code == event.code or other.code in (None, "xid-unparsed"):
        return False
    return other.code in row.companions or (
        "any" in row.companions and other.kind not in relations.FOLLOW_UPS
    )


def _related_kinds() -> dict[Mark, tuple[Mark, ...]]:
    found: dict[Mark, set[Mark]] = {}
    for one, other in relations.RELATIONS:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {kind: tuple(kinds) for kind, kinds in found.items()}


_RELATED = _related_kinds()
