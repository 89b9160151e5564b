"""Incident: one cause on one node, from the first finding to the end, and the table of what may follow what.

Pure values. An event that is not in `TABLE` is refused and changes nothing: the loops decide which event
happened, this module decides whether it may. Every event raises the revision, so a button can name what it
showed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from checks.finding import Finding
from reconciler.incidents.digests import digest, evidence_digest
from reconciler.incidents.paths import incident_directory
from reconciler.incidents.plan import Plan
from reconciler.incidents.records import Cause, CloseReason, Decider, RepairOutcome
from reconciler.repair.resource import RepairStatus


class State(StrEnum):
    """The state of an incident. `deciding`: a person has decided, and the decision is not in Git yet."""

    OPEN = "open"
    LAPSED = "lapsed"
    DECIDING = "deciding"
    APPROVED = "approved"
    REPAIRING = "repairing"
    DECLINED = "declined"
    HELD = "held"
    CLOSED = "closed"

    @property
    def may_repair(self) -> bool:
        """Whether the reconciler may be working on the node: an approval is recorded and has no outcome yet."""
        return self in (State.APPROVED, State.REPAIRING)


class IncidentEvent(StrEnum):
    """What can happen to an incident. Events that end in `-recorded` are read back from Git."""

    FINDINGS_CHANGED = "findings-changed"
    FINDINGS_WORSENED = "findings-worsened"
    FINDINGS_CLEARED = "findings-cleared"
    OFFER_CHANGED = "offer-changed"
    OFFER_LAPSED = "offer-lapsed"
    RENEWED = "renewed"
    RESOLVED = "resolved"
    DECIDED = "decided"
    DECISION_DROPPED = "decision-dropped"
    APPROVAL_RECORDED = "approval-recorded"
    REJECTION_RECORDED = "rejection-recorded"
    REPAIR_STARTED = "repair-started"
    REPAIR_SUCCEEDED = "repair-succeeded"
    REPAIR_UNDONE = "repair-undone"
    REPAIR_HELD = "repair-held"
    NODE_GONE = "node-gone"
    CLOSE_RECORDED = "close-recorded"


_WAITING: Final = (State.OPEN, State.LAPSED, State.DECLINED, State.HELD)
_BEFORE: Final = (*_WAITING, State.DECIDING)

TABLE: Final[Mapping[tuple[State, IncidentEvent], State]] = {
    # Findings: worse ones ask again where people had declined. A decision that is not recorded yet was about
    # other findings. While a repair may run, findings do not change: it was approved for the ones it has.
    **{(state, IncidentEvent.FINDINGS_CHANGED): state for state in _WAITING},
    **{(state, IncidentEvent.FINDINGS_WORSENED): State.OPEN for state in _WAITING if state is not State.HELD},
    (State.HELD, IncidentEvent.FINDINGS_WORSENED): State.HELD,
    (State.DECIDING, IncidentEvent.FINDINGS_CHANGED): State.OPEN,
    (State.DECIDING, IncidentEvent.FINDINGS_WORSENED): State.OPEN,
    **{(state, IncidentEvent.FINDINGS_CLEARED): State.CLOSED for state in _BEFORE if state is not State.HELD},
    **{(state, IncidentEvent.NODE_GONE): State.CLOSED for state in _BEFORE},
    # The offer: what people may approve, and until when.
    (State.OPEN, IncidentEvent.OFFER_CHANGED): State.OPEN,
    (State.DECIDING, IncidentEvent.OFFER_CHANGED): State.OPEN,
    (State.OPEN, IncidentEvent.OFFER_LAPSED): State.LAPSED,
    (State.DECIDING, IncidentEvent.OFFER_LAPSED): State.LAPSED,
    (State.LAPSED, IncidentEvent.RENEWED): State.OPEN,
    (State.DECLINED, IncidentEvent.RENEWED): State.OPEN,
    (State.HELD, IncidentEvent.RENEWED): State.OPEN,
    # A held repair stopped half way, so only a person can say that the node is fixed.
    (State.HELD, IncidentEvent.RESOLVED): State.CLOSED,
    # Decisions: a click counts once it is recorded. A decision that was recorded elsewhere counts as well.
    (State.OPEN, IncidentEvent.DECIDED): State.DECIDING,
    (State.DECIDING, IncidentEvent.DECISION_DROPPED): State.OPEN,
    **{(state, IncidentEvent.APPROVAL_RECORDED): State.APPROVED for state in _BEFORE},
    **{
        (state, IncidentEvent.REJECTION_RECORDED): State.DECLINED
        for state in (State.OPEN, State.DECIDING, State.LAPSED)
    },
    # The repair, as the reconciler reports it.
    (State.APPROVED, IncidentEvent.REPAIR_STARTED): State.REPAIRING,
    **{(state, IncidentEvent.REPAIR_SUCCEEDED): State.CLOSED for state in (State.APPROVED, State.REPAIRING)},
    **{(state, IncidentEvent.REPAIR_UNDONE): State.OPEN for state in (State.APPROVED, State.REPAIRING)},
    **{(state, IncidentEvent.REPAIR_HELD): State.HELD for state in (State.APPROVED, State.REPAIRING)},
    # Closed elsewhere, by a person's pull request: Git has the last word.
    **{(state, IncidentEvent.CLOSE_RECORDED): State.CLOSED for state in State if state is not State.CLOSED},
}
"""State and event → next state. A pair that is not listed is refused."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A repair that people may approve until `expires_at` (UTC)."""

    plan: Plan
    offered_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person decided in attempt `attempt`, about which evidence.

    `expires_at` is when an approval lapses.
    """

    attempt: int
    approves: bool
    person: Decider
    at: datetime
    expires_at: datetime
    via: str
    evidence_digest: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Closure:
    """Why an incident closed, when (UTC), and who closed it (empty for nobody)."""

    why: CloseReason
    at: datetime
    by: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """One cause on one node.

    `boot_id` is the boot of the current findings, `opened_boot_id` the boot of the first ones, which is part of
    the id. `companions` are findings that open no incident by themselves and belong to the same fault. `boards`
    are the addresses and serial numbers of the affected GPUs, where they are known. `attempt` numbers the next
    decision files, from 1. `worsened` says that worse findings arrived after the first ones; `clear_since` is
    when the findings were last reported gone. The lifetime of an offer counts from `offer_from`. `recorded` are
    the names of the incident's files that were read back from Git.
    """

    id: str
    cluster: str
    node: str
    node_uid: str
    cause: Cause
    opened_boot_id: str
    boot_id: str
    opened_at: datetime
    findings: tuple[Finding, ...]
    offer_from: datetime
    companions: tuple[Finding, ...] = ()
    boards: tuple[tuple[str, str], ...] = ()
    state: State = State.OPEN
    revision: int = 1
    attempt: int = 1
    offer: Offer | None = None
    decision: Decision | None = None
    progress: RepairStatus | None = None
    outcomes: tuple[RepairOutcome, ...] = ()
    worsened: bool = False
    clear_since: datetime | None = None
    ending: Closure | None = None
    recorded: frozenset[str] = frozenset()

    @property
    def evidence_digest(self) -> str:
        """What an approval of this incident is bound to."""
        return evidence_digest(self.boot_id, self.findings)

    @property
    def offer_digest(self) -> str:
        """Digest of what the buttons decide about: node, boot, findings, plan, attempt and deadline."""
        offer = self.offer
        shown = [offer.plan.digest, int(offer.expires_at.timestamp())] if offer else []
        return digest([self.id, self.attempt, self.node_uid, self.evidence_digest, *shown])

    @property
    def path(self) -> str:
        """The incident's directory on the incident branch."""
        return incident_directory(self.id, self.opened_at)


def transition(incident: Incident, event: IncidentEvent, **changes: Any) -> Incident | None:
    """Return the incident after `event`, with `changes` and the next revision; None when `TABLE` refuses it."""
    state = TABLE.get((incident.state, event))
    if state is None:
        return None
    return replace(incident, state=state, revision=incident.revision + 1, **changes)


def worst(findings: tuple[Finding, ...]) -> Finding:
    """Return the finding that names the incident: the worst, then the earliest; ValueError for none."""
    return min(findings, key=lambda each: (-each.severity.rank, each.first_seen, each.key))


def is_worse(old: tuple[Finding, ...], new: tuple[Finding, ...]) -> bool:
    """Whether `new` holds a fault that `old` lacks, or a known one at a higher severity."""
    before = {each.key: each.severity.rank for each in old}
    return any(each.severity.rank > before.get(each.key, -1) for each in new)
