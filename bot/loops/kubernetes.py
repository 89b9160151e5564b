"""Reads the nodes, the pods that a repair would evict, and the progress of repairs from Kubernetes.

It only reads. What cannot be read changes nothing: an offer stays as it was shown, and every click is judged by
a fresh read of its own.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import structlog
from pydantic import ValidationError

from bot.incidents.approve import NodeObservation
from bot.incidents.correlate import faults, is_stale
from bot.incidents.incident import Incident, IncidentEvent, Offer, State
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.cluster_state import ClusterState
from checks.finding import Action
from reconciler.incidents.coverage import disturbed, uncovered
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.progress import Phase
from reconciler.kube.results import UnavailableError
from reconciler.repair.actions.registry import ACTIONS, make_plan
from reconciler.repair.journal import may_have_happened
from reconciler.repair.resource import RepairStatus

log = structlog.get_logger("bot.lifecycle")

UNREADABLE = "Kubernetes cannot be read at the moment, so it is not known which pods a repair would stop."
"""What people read on an incident while the pods of its node cannot be listed."""


class KubernetesLoop:
    """Keeps the open incidents and the cluster in line. An offer lapses after `offer_lifetime`."""

    def __init__(
        self, store: IncidentStore, reports: ReportStore, reader: ClusterState, offer_lifetime: timedelta
    ) -> None:
        self._store = store
        self._reports = reports
        self._reader = reader
        self._lifetime = offer_lifetime
        self._unreadable = ""

    async def read_nodes(self) -> None:
        """Read every node once."""
        try:
            nodes = await asyncio.to_thread(self._reader.nodes)
        except UnavailableError as error:
            self._store.report_trouble("kubernetes", str(error))
            return
        self._store.report_trouble("kubernetes", "")
        first = self._store.nodes is None
        self._store.set_nodes(nodes)
        if first:
            self._store.changed.notify()

    async def offer(self, refresh_after: timedelta) -> None:
        """Bring each offer that is due in line with the pods on its node."""
        for open_incident in list(self._store.by_id.values()):
            due = (
                open_incident.pods_read_at is None
                or self._store.now() - open_incident.pods_read_at >= refresh_after
            )
            if due and open_incident.incident.state is State.OPEN:
                await self._offer(open_incident)

    async def read_repairs(self) -> bool:
        """Read the progress of repairs; True when one has ended, so that its outcome is in Git or soon will be."""
        waiting = [
            open_incident
            for open_incident in self._store.by_id.values()
            if open_incident.incident.state.may_repair
        ]
        if not waiting and self._store.reset_boots is not None:
            return False
        try:
            found = await asyncio.to_thread(self._reader.repairs)
        except UnavailableError as error:
            self._store.report_trouble("kubernetes", str(error))
            return False
        self._store.reset_boots = _reset_boots(found)
        by_incident = {_attempt_of(raw): raw for raw in found}
        self._unreadable = ""
        ended = [self._progress(open_incident, by_incident) for open_incident in waiting]
        self._store.report_trouble("repairs", self._unreadable)
        return any(ended)

    async def observe(self, incident: Incident, report_interval: timedelta) -> NodeObservation | None:
        """Read what an approval depends on; None when Kubernetes cannot be read."""
        try:
            node = await asyncio.to_thread(self._reader.node, incident.node)
            current = await self._disturbed(incident)
        except UnavailableError as error:
            self._store.report_trouble("kubernetes", str(error))
            return None
        shown = incident.offer.plan.disturbs if incident.offer else ()
        return NodeObservation(
            node_uid=node.uid if node else None,
            boot_id=node.boot_id if node else "",
            fresh=self._fresh(incident, report_interval),
            uncovered_pods=uncovered(shown, current),
        )

    def _fresh(self, incident: Incident, report_interval: timedelta) -> bool:
        held = self._reports.newest(incident.node)
        if held is None or is_stale(held.age_seconds, report_interval.total_seconds()):
            return False
        found = faults(held.report).get(incident.cause)
        return (
            found is not None
            and evidence_digest(held.report.boot_id, found.findings) == incident.evidence_digest
        )

    async def _offer(self, open_incident: OpenIncident) -> None:
        store, incident = self._store, open_incident.incident
        node = (store.nodes or {}).get(incident.node)
        if store.config is None or node is None:
            return
        offered = store.recommendation(incident).offered
        if offered is None:
            if incident.offer is not None:
                store.transition(open_incident, IncidentEvent.OFFER_CHANGED, offer=None)
            self._pods_were_read(open_incident, "")
            return
        try:
            current = await self._disturbed(incident)
        except UnavailableError as error:
            store.report_trouble("kubernetes", str(error))
            self._pods_were_read(open_incident, "" if incident.offer else UNREADABLE)
            return
        if open_incident.incident.revision == incident.revision:
            self._renew(open_incident, offered, current)
            self._pods_were_read(open_incident, "")

    def _pods_were_read(self, open_incident: OpenIncident, trouble: str) -> None:
        first, open_incident.pods_read_at = open_incident.pods_read_at is None, self._store.now()
        was = open_incident.trouble.pop("kubernetes", "")
        if trouble:
            open_incident.trouble["kubernetes"] = trouble
        if first or was != trouble:
            self._store.changed.notify()

    def _renew(self, open_incident: OpenIncident, offered: Action, current: tuple[PlannedPod, ...]) -> None:
        incident = open_incident.incident
        shown = incident.offer
        if shown and shown.plan.action is offered and not uncovered(shown.plan.disturbs, current):
            return
        kind = self._store.provider(incident.node)
        if kind is None:
            return
        now = self._store.now()
        offer = Offer(
            plan=make_plan(ACTIONS[offered], kind.name, current),
            offered_at=now,
            expires_at=incident.offer_from + self._lifetime,
        )
        self._store.transition(open_incident, IncidentEvent.OFFER_CHANGED, offer=offer)
        if now >= offer.expires_at:
            self._store.transition(open_incident, IncidentEvent.OFFER_LAPSED)

    async def _disturbed(self, incident: Incident) -> tuple[PlannedPod, ...]:
        pods, budgets = await asyncio.gather(
            asyncio.to_thread(self._reader.pods, incident.node), asyncio.to_thread(self._reader.budgets)
        )
        return disturbed(pods, budgets)

    def _progress(
        self, open_incident: OpenIncident, found: Mapping[tuple[str, int], Mapping[str, Any]]
    ) -> bool:
        incident = open_incident.incident
        number = incident.decision.attempt if incident.decision else incident.attempt
        raw = found.get((incident.id, number))
        if raw is None or not raw.get("status"):
            return False
        try:
            status = RepairStatus.model_validate(raw["status"])
        except ValidationError as error:
            # A newer reconciler wrote it: the repair is in progress, as far as this version can tell.
            self._unreadable = " ".join(str(error).split())[:200]
            return False
        if incident.state is State.APPROVED and status.phase is not Phase.PENDING:
            self._store.transition(open_incident, IncidentEvent.REPAIR_STARTED, progress=status)
        else:
            self._store.update(open_incident, progress=status)
        return status.phase.final


def _reset_boots(found: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return, by node, the boots that a repair may have ended; a Repair that cannot be read is left out."""
    boots: dict[str, frozenset[str]] = {}
    for raw in found:
        try:
            status = RepairStatus.model_validate(raw.get("status") or {})
        except ValidationError:
            continue
        if status.pre_state is not None and may_have_happened(status):
            node = str(_evidence(raw).get("node"))
            boots[node] = boots.get(node, frozenset()) | {status.pre_state.boot_id}
    return boots


def _attempt_of(raw: Mapping[str, Any]) -> tuple[str, int]:
    attempt = _record(raw).get("attempt")
    return str(_evidence(raw).get("incident")), attempt if isinstance(attempt, int) else 0


def _record(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    record = (raw.get("spec") or {}).get("record")
    return record if isinstance(record, Mapping) else {}


def _evidence(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    evidence = _record(raw).get("evidence")
    return evidence if isinstance(evidence, Mapping) else {}
