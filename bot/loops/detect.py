"""Reports → what happens to incidents: opened, changed, worse, cleared, lapsed, gone.

One pass compares the newest report of every node with the open incidents. A silent node says nothing: its faults
stay open, and its silence is a fault of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from bot.incidents.correlate import Fault, faults, incident_id, is_silent, silence_fault, slurm_fault
from bot.incidents.incident import Closure, Incident, IncidentEvent, State, is_worse
from bot.incidents.reports import ReceivedReport
from bot.incidents.store import IncidentStore, OpenIncident
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.records import Cause, CloseReason
from reconciler.kube.objects import Node


@dataclass(frozen=True, slots=True)
class DetectionTimes:
    """How long to wait: between reports, before findings count as cleared, before an offer lapses."""

    report_interval: timedelta
    clear_after: timedelta
    offer_lifetime: timedelta


def detect(store: IncidentStore, held: Mapping[str, ReceivedReport], detection: DetectionTimes) -> None:
    """Bring the incidents in line with the reports. Does nothing before nodes and Git have been read."""
    now = store.now()
    if store.nodes is None or not store.read_git:
        return
    for open_incident in list(store.by_id.values()):
        _expire(store, open_incident, now)
    for node in store.nodes.values():
        if node.name in held or _expected(store, node):
            _detect_on_node(store, node, held.get(node.name), detection)


def _expected(store: IncidentStore, node: Node) -> bool:
    return store.config is not None and store.config.pool_of(node.labels) is not None


def _expire(store: IncidentStore, open_incident: OpenIncident, now: datetime) -> None:
    incident = open_incident.incident
    node = (store.nodes or {}).get(incident.node)
    if node is None or node.uid != incident.node_uid:
        store.transition(open_incident, IncidentEvent.NODE_GONE, ending=Closure(CloseReason.NODE_GONE, now))
    elif incident.offer is not None and now >= incident.offer.expires_at:
        store.transition(open_incident, IncidentEvent.OFFER_LAPSED, **_dropped(incident))


def _dropped(incident: Incident) -> dict[str, object]:
    return {"decision": None} if incident.state is State.DECIDING else {}


def _detect_on_node(
    store: IncidentStore, node: Node, held: ReceivedReport | None, detection: DetectionTimes
) -> None:
    now, interval = store.now(), detection.report_interval.total_seconds()
    seen_at = store.seen_since[node.uid]
    last_report_at = max(held.received_at, seen_at) if held else seen_at
    silent = is_silent(last_report_at, now, interval)
    if held is None and not silent:
        return
    if silent:
        boot_id = held.report.boot_id if held else node.boot_id
        found = {Cause.AGENT: silence_fault(last_report_at, interval)}
    else:
        assert held is not None  # noqa: S101 - a node that is not silent has sent a report
        boot_id, found = held.report.boot_id, faults(held.report)
    slurm = slurm_fault((store.slurm or {}).get(node.name, ()))
    if slurm is not None:
        found[Cause.SLURM] = slurm
    for cause in Cause:
        open_incident, fault = store.find(node.uid, cause), found.get(cause)
        if fault is not None and open_incident is None:
            _open(store, node, boot_id, fault)
        elif fault is not None and open_incident is not None:
            _changed(store, open_incident, fault, boot_id)
        elif open_incident is not None:
            unknown = store.slurm is None if cause is Cause.SLURM else silent
            _absent(store, open_incident, detection.clear_after, unknown=unknown)


def _open(store: IncidentStore, node: Node, boot_id: str, fault: Fault) -> None:
    if store.in_repair(node.uid):
        # A repair causes faults of its own. What is still wrong after it opens an incident then (node checks, M7).
        return
    now = store.now()
    store.open(
        Incident(
            id=_new_id(store, node, fault.cause, boot_id),
            cluster=store.cluster,
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
    store.metrics.moves.labels(State.OPEN.value).inc()


def _new_id(store: IncidentStore, node: Node, cause: Cause, boot_id: str) -> str:
    ordinal = 0
    while True:
        found = incident_id(store.cluster, node.name, node.uid, (cause, boot_id), ordinal)
        if found not in store.closed and found not in store.by_id:
            return found
        ordinal += 1


_UNCHANGING: Final = frozenset({State.APPROVED, State.REPAIRING, State.CLOSED})


def _changed(store: IncidentStore, open_incident: OpenIncident, fault: Fault, boot_id: str) -> None:
    incident = open_incident.incident
    if incident.state in _UNCHANGING:
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
        if incident.clear_since is not None or _appearance(incident) != _appearance(fault):
            store.update(open_incident, **changes)
        return
    if incident.state is State.DECIDING:
        changes["decision"] = None
    # Findings that people have decided about are not news, even after a restart from the first findings.
    decided = made is not None and made.evidence_digest == evidence
    if not decided and is_worse(incident.findings, fault.findings):
        again = {"worsened": True, "offer_from": store.now(), "offer": None}
        store.transition(open_incident, IncidentEvent.FINDINGS_WORSENED, **changes, **again)
    else:
        store.transition(open_incident, IncidentEvent.FINDINGS_CHANGED, **changes)
    open_incident.pods_read_at = None


def _appearance(shown: Incident | Fault) -> list[tuple[str, int]]:
    """Return what is worth an edit while the fault is the same: companions, and counts as they double."""
    return sorted((each.key, each.count.bit_length()) for each in (*shown.findings, *shown.companions))


def _absent(
    store: IncidentStore, open_incident: OpenIncident, clear_after: timedelta, *, unknown: bool
) -> None:
    incident, now = open_incident.incident, store.now()
    if incident.state in _UNCHANGING:
        return
    if unknown:
        # A silent node has not been seen healthy.
        store.update(open_incident, clear_since=None)
    elif incident.clear_since is None:
        store.update(open_incident, clear_since=now)
    elif now - incident.clear_since >= clear_after:
        store.transition(
            open_incident, IncidentEvent.FINDINGS_CLEARED, ending=Closure(CloseReason.CLEARED, now)
        )
