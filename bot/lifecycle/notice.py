"""Reports → what happened to incidents: opened, changed, worse, cleared, lapsed, gone.

One pass compares what every node says now with the incidents on the desk. A node that is silent says nothing:
its faults stand, and its silence is a fault of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bot.correlate import Fault, faults, incident_id, is_silent, silence_fault, slurm_fault
from bot.incident import Cause, Ending, Event, Incident, State, Why, is_worse
from bot.lifecycle.desk import Case, Desk
from bot.lifecycle.reports import Held
from reconciler.observed import Node
from reconciler.repair.record import evidence_digest


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait: between reports, before findings count as cleared, before an offer lapses."""

    report_interval: timedelta
    clear_after: timedelta
    offer_lifetime: timedelta


def notice(desk: Desk, held: Mapping[str, Held], patience: Patience) -> None:
    """Bring the incidents in line with the reports; does nothing before nodes and Git have been read."""
    now = desk.now()
    if desk.nodes is None or not desk.read_git:
        return
    for case in list(desk.cases.values()):
        _watch_node_and_offer(desk, case, now)
    for node in desk.nodes.values():
        if node.name in held or _expected(desk, node):
            _notice_node(desk, node, held.get(node.name), patience)


def _expected(desk: Desk, node: Node) -> bool:
    return desk.config is not None and desk.config.pool_of(node.labels) is not None


def _watch_node_and_offer(desk: Desk, case: Case, now: datetime) -> None:
    incident = case.incident
    node = (desk.nodes or {}).get(incident.node)
    if node is None or node.uid != incident.node_uid:
        desk.follow(case, Event.NODE_GONE, ending=Ending(Why.NODE_GONE, now))
    elif incident.offer is not None and now >= incident.offer.expires_at:
        desk.follow(case, Event.OFFER_LAPSED, **_dropped(incident))


def _dropped(incident: Incident) -> dict[str, object]:
    return {"decision": None} if incident.state is State.DECIDING else {}


def _notice_node(desk: Desk, node: Node, held: Held | None, patience: Patience) -> None:
    now, interval = desk.now(), patience.report_interval.total_seconds()
    seen_at = desk.seen_since[node.uid]
    heard_at = max(held.received_at, seen_at) if held else seen_at
    silent = is_silent(heard_at, now, interval)
    if held is None and not silent:
        return
    if silent:
        boot_id = held.report.boot_id if held else node.boot_id
        found = {Cause.AGENT: silence_fault(heard_at, interval)}
    else:
        assert held is not None  # noqa: S101 - a node that is not silent has been heard
        boot_id, found = held.report.boot_id, faults(held.report)
    slurm = slurm_fault((desk.slurm or {}).get(node.name, ()))
    if slurm is not None:
        found[Cause.SLURM] = slurm
    for cause in Cause:
        case, fault = desk.find(node.uid, cause), found.get(cause)
        if fault is not None and case is None:
            _open(desk, node, boot_id, fault)
        elif fault is not None and case is not None:
            _changed(desk, case, fault, boot_id)
        elif case is not None:
            unknown = desk.slurm is None if cause is Cause.SLURM else silent
            _absent(desk, case, patience.clear_after, unknown=unknown)


def _open(desk: Desk, node: Node, boot_id: str, fault: Fault) -> None:
    if desk.in_repair(node.uid):
        # A repair shakes the node: what is still wrong when it has ended is opened then (node checks, M7).
        return
    now = desk.now()
    desk.open(
        Incident(
            id=_new_id(desk, node, fault.cause, boot_id),
            cluster=desk.cluster,
            node=node.name,
            node_uid=node.uid,
            cause=fault.cause,
            opened_boot_id=boot_id,
            boot_id=boot_id,
            opened_at=now,
            offer_from=now,
            findings=fault.findings,
            companions=fault.companions,
            boards=fault.boards,
        )
    )
    desk.metrics.moves.labels(State.OPEN.value).inc()


def _new_id(desk: Desk, node: Node, cause: Cause, boot_id: str) -> str:
    ordinal = 0
    while True:
        found = incident_id(desk.cluster, node.name, node.uid, (cause, boot_id), ordinal)
        if found not in desk.closed and found not in desk.cases:
            return found
        ordinal += 1


_FROZEN: Final = frozenset({State.APPROVED, State.REPAIRING, State.CLOSED})


def _changed(desk: Desk, case: Case, fault: Fault, boot_id: str) -> None:
    incident = case.incident
    if incident.state in _FROZEN:
        return
    changes: dict[str, object] = {
        "findings": fault.findings,
        "companions": fault.companions,
        "boards": fault.boards,
        "boot_id": boot_id,
        "clear_since": None,
    }
    evidence, made = evidence_digest(boot_id, fault.findings), incident.decision
    if evidence == incident.evidence_digest:
        if incident.clear_since is not None or _looks(incident) != _looks(fault):
            desk.update(case, **changes)
        return
    if incident.state is State.DECIDING:
        changes["decision"] = None
    # What people have decided about already is not news, even if we began again from the first findings.
    decided = made is not None and made.evidence_digest == evidence
    if not decided and is_worse(incident.findings, fault.findings):
        again = {"worsened": True, "offer_from": desk.now(), "offer": None}
        desk.follow(case, Event.FINDINGS_WORSENED, **changes, **again)
    else:
        desk.follow(case, Event.FINDINGS_CHANGED, **changes)
    case.looked_at = None


def _looks(shown: Incident | Fault) -> list[tuple[str, int]]:
    """Return what is worth an edit when the fault is the same: companions, and counts as they double."""
    return sorted((each.key, each.count.bit_length()) for each in (*shown.findings, *shown.companions))


def _absent(desk: Desk, case: Case, clear_after: timedelta, *, unknown: bool) -> None:
    incident, now = case.incident, desk.now()
    if incident.state in _FROZEN:
        return
    if unknown:
        # A silent node has not been seen healthy.
        desk.update(case, clear_since=None)
    elif incident.clear_since is None:
        desk.update(case, clear_since=now)
    elif now - incident.clear_since >= clear_after:
        desk.follow(case, Event.FINDINGS_CLEARED, ending=Ending(Why.CLEARED, now))
