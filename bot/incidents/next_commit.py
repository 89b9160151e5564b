"""Incident → the next commit that the incident branch lacks. Pure.

One event, one commit. A decision id is derived from what is decided and by whom: the same event is found again
after a lost reply, and two different decisions never share an id.
"""

from collections.abc import Mapping
from typing import Final

import yaml

from bot.incidents.incident import Decision, Incident, Offer, State, worst
from reconciler.incidents.digests import action_id, digest
from reconciler.incidents.paths import CLOSED, OPENED, THREAD, approval_name, next_rejection_name, repair_name
from reconciler.incidents.records import (
    Approval,
    CloseReason,
    Evidence,
    IncidentClosed,
    IncidentOpened,
    Rejection,
    RepairRecord,
    ThreadOpened,
)
from reconciler.incidents.value import RecordValue
from reconciler.source.recording import Commit, Person

Trailers = tuple[tuple[str, str], ...]


def wanted(incident: Incident, thread: tuple[str, str] | None) -> Commit | None:
    """Return the first event that Git lacks, None when it has all; `thread` is (channel, ts) once posted.

    A decision waits only for `opened.yaml`: what people decided is recorded before where they talk.
    """
    if OPENED not in incident.recorded:
        return opened(incident)
    if incident.state is State.DECIDING:
        return decision(incident)
    if thread is not None and THREAD not in incident.recorded:
        return in_thread(incident, *thread)
    if incident.state is State.CLOSED and CLOSED not in incident.recorded:
        return closed(incident)
    return None


def opened(incident: Incident) -> Commit:
    """Return the event that opens the incident in Git."""
    value = IncidentOpened(
        incident=incident.id,
        cluster=incident.cluster,
        node=incident.node,
        node_uid=incident.node_uid,
        boot_id=incident.opened_boot_id,
        cause=incident.cause,
        opened_at=incident.opened_at,
        findings=incident.findings,
        boards=dict(incident.boards) or None,
    )
    lead = worst(incident.findings)
    subject = f"Open incident {incident.id}: {lead.subsystem} {lead.code} on {incident.node}"
    return _event(incident, {OPENED: value}, subject, ["opened"])


def in_thread(incident: Incident, channel: str, ts: str) -> Commit:
    """Return the event that records where people talk about the incident."""
    value = ThreadOpened(incident=incident.id, channel=channel, ts=ts)
    return _event(incident, {THREAD: value}, f"Tell people about {incident.id}", ["thread", channel, ts])


def decision(incident: Incident) -> Commit | None:
    """Return the event of the decision that is not recorded yet; None when nothing is decided."""
    made, offer = incident.decision, incident.offer
    if made is None or offer is None:
        return None
    return _approval(incident, made, offer) if made.approves else _rejection(incident, made, offer)


def closed(incident: Incident) -> Commit | None:
    """Return the event that closes the incident in Git; None while it has no ending."""
    ending = incident.ending
    if ending is None:
        return None
    value = IncidentClosed(
        incident=incident.id, node=incident.node, why=ending.why, closed_at=ending.at, by=ending.by
    )
    subject = f"Close incident {incident.id}: {_ENDED[ending.why]}"
    return _event(incident, {CLOSED: value}, subject, ["closed"])


_ENDED: Final[Mapping[CloseReason, str]] = {
    CloseReason.REPAIRED: "repaired",
    CloseReason.CLEARED: "findings cleared",
    CloseReason.NODE_GONE: "the node is gone",
    CloseReason.RESOLVED: "marked as fixed by a person",
    CloseReason.RECORDED: "closed in Git",
}


def evidence(incident: Incident) -> Evidence:
    """Return what a decision about the incident as shown now is about."""
    return Evidence(
        cluster=incident.cluster,
        incident=incident.id,
        node=incident.node,
        node_uid=incident.node_uid,
        boot_id=incident.boot_id,
        findings=tuple(each.key for each in incident.findings),
        evidence_digest=incident.evidence_digest,
        plan_digest=incident.offer.plan.digest if incident.offer else "",
    )


def _approval(incident: Incident, made: Decision, offer: Offer) -> Commit:
    number, action = made.attempt, offer.plan.action
    identity = action_id(incident.cluster, incident.node_uid, incident.id, number)
    key = digest([incident.id, "approval", number, made.person.email.casefold()])
    approval = Approval(
        decision_id=key,
        action=action,
        evidence=evidence(incident),
        approver=made.person,
        approved_at=made.at,
        expires_at=made.expires_at,
        via=made.via,
    )
    record = RepairRecord(
        action_id=identity,
        attempt=number,
        action=action,
        evidence=approval.evidence,
        plan=offer.plan,
        approvals=(approval_name(number),),
        approved_at=made.at,
        expires_at=made.expires_at,
    )
    return Commit(
        files=_files(incident, {approval_name(number): approval, repair_name(number): record}),
        subject=f"Approve {action.value} of {incident.node}",
        body=f"Approved by {made.person.name} for incident {incident.id}.",
        decision_id=key,
        trailers=(
            *_trailers(incident),
            ("Action", action.value),
            ("Approved-by", f"{made.person.name} <{made.person.email}>"),
        ),
        author=Person(made.person.name, made.person.email),
    )


def _rejection(incident: Incident, made: Decision, offer: Offer) -> Commit:
    name = next_rejection_name(incident.recorded)
    key = digest([incident.id, "rejection", name, made.person.email.casefold()])
    value = Rejection(
        decision_id=key,
        action=offer.plan.action,
        evidence=evidence(incident),
        person=made.person,
        reason=made.reason,
        rejected_at=made.at,
        via=made.via,
    )
    return Commit(
        files=_files(incident, {name: value}),
        subject=f"Decline {offer.plan.action.value} of {incident.node}",
        body=made.reason,
        decision_id=key,
        trailers=(*_trailers(incident), ("Action", offer.plan.action.value)),
        author=Person(made.person.name, made.person.email),
    )


def _event(incident: Incident, values: Mapping[str, RecordValue], subject: str, key: list[str]) -> Commit:
    return Commit(
        files=_files(incident, values),
        subject=subject,
        decision_id=digest([incident.id, *key]),
        trailers=_trailers(incident),
    )


def _trailers(incident: Incident) -> Trailers:
    return (("Incident", incident.id), ("Node", incident.node))


def _files(incident: Incident, values: Mapping[str, RecordValue]) -> Mapping[str, str]:
    return {f"{incident.path}/{name}": _text(value) for name, value in values.items()}


def _text(value: RecordValue) -> str:
    plain = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
