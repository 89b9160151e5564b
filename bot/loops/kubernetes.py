"""Kubernetes and the desk kept in line: the nodes, whom a repair would disturb, and how repairs proceed.

Reads only. What cannot be read changes nothing: offers stay as they were shown, and are judged at the click
by a reading of their own.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import structlog
from pydantic import ValidationError

from bot.incidents.approve import World
from bot.incidents.correlate import SILENCE_REPORTS, faults
from bot.incidents.incident import Incident, IncidentEvent, Offer, State
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore, OpenIncident
from checks.finding import Action
from reconciler.incidents.coverage import disturbed, uncovered
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.progress import Phase, StepState
from reconciler.kube.read import KubernetesReader
from reconciler.kube.results import UnavailableError
from reconciler.repair.actions.registry import ACTIONS, make_plan
from reconciler.repair.resource import RepairStatus

log = structlog.get_logger("bot.lifecycle")

UNREADABLE = "Kubernetes cannot be read just now, so it is not known whom a repair would disturb."
"""What people see of an incident whose node's pods cannot be listed."""


class KubernetesLoop:
    """Keeps desk and cluster in line. `offer_lifetime` is how long buttons stand before an offer lapses."""

    def __init__(
        self, store: IncidentStore, reports: ReportStore, reader: KubernetesReader, offer_lifetime: timedelta
    ) -> None:
        self._store = store
        self._reports = reports
        self._reader = reader
        self._lifetime = offer_lifetime

    async def read_nodes(self) -> None:
        """Read every node once."""
        try:
            nodes = await asyncio.to_thread(self._reader.nodes)
        except UnavailableError as error:
            self._store.report_trouble("kubernetes", str(error))
            return
        self._store.report_trouble("kubernetes", "")
        first = self._store.nodes is None
        self._store.know(nodes)
        if first:
            self._store.changed.notify()

    async def offer(self, refresh_after: timedelta) -> None:
        """Bring the offers in line with the pods on the nodes, for each incident that is due."""
        for open_incident in list(self._store.by_id.values()):
            due = (
                open_incident.looked_at is None
                or self._store.now() - open_incident.looked_at >= refresh_after
            )
            if due and open_incident.incident.state is State.OPEN:
                await self._offer(open_incident)

    async def follow_repairs(self) -> bool:
        """Read how repairs proceed; True when one has ended, so Git has or will have its outcome."""
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
        by_incident = {_names(raw): raw for raw in found}
        ended = [self._progress(open_incident, by_incident) for open_incident in waiting]
        return any(ended)

    async def world(self, incident: Incident, report_interval: timedelta) -> World | None:
        """Read what an approval depends on; None when Kubernetes does not say."""
        try:
            node = await asyncio.to_thread(self._reader.node, incident.node)
            current = await self._disturbed(incident)
        except UnavailableError as error:
            self._store.report_trouble("kubernetes", str(error))
            return None
        shown = incident.offer.plan.disturbs if incident.offer else ()
        newcomers = uncovered(shown, current)
        return World(
            node_uid=node.uid if node else None,
            boot_id=node.boot_id if node else "",
            covered=not newcomers,
            fresh=self._fresh(incident, report_interval),
            newcomers=newcomers,
        )

    def _fresh(self, incident: Incident, report_interval: timedelta) -> bool:
        held = self._reports.newest(incident.node)
        if held is None or held.age_seconds > SILENCE_REPORTS * report_interval.total_seconds():
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
                store.follow(open_incident, IncidentEvent.OFFER_CHANGED, offer=None)
            self._looked(open_incident, "")
            return
        try:
            current = await self._disturbed(incident)
        except UnavailableError as error:
            store.report_trouble("kubernetes", str(error))
            self._looked(open_incident, "" if incident.offer else UNREADABLE)
            return
        if open_incident.incident.revision == incident.revision:
            self._renew(open_incident, offered, current)
            self._looked(open_incident, "")

    def _looked(self, open_incident: OpenIncident, trouble: str) -> None:
        first, open_incident.looked_at = open_incident.looked_at is None, self._store.now()
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
        self._store.follow(open_incident, IncidentEvent.OFFER_CHANGED, offer=offer)
        if now >= offer.expires_at:
            self._store.follow(open_incident, IncidentEvent.OFFER_LAPSED)

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
            # A newer reconciler's words: in progress, as far as we can tell.
            self._store.report_trouble("repairs", " ".join(str(error).split())[:200])
            return False
        if incident.state is State.APPROVED and status.phase is not Phase.PENDING:
            self._store.follow(open_incident, IncidentEvent.REPAIR_STARTED, progress=status)
        else:
            self._store.update(open_incident, progress=status)
        return status.phase.final


def _reset_boots(found: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return, by node, the boots in which a repair may have restarted the machine."""
    boots: dict[str, frozenset[str]] = {}
    for raw in found:
        status = raw.get("status") or {}
        before = (status.get("preState") or {}).get("bootId")
        if before and any(_may_have_happened(each) for each in status.get("steps") or ()):
            evidence = ((raw.get("spec") or {}).get("record") or {}).get("evidence") or {}
            node = str(evidence.get("node"))
            boots[node] = boots.get(node, frozenset()) | {str(before)}
    return boots


def _may_have_happened(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("destructive")) and entry.get("state") != StepState.NOT_DONE


def _names(raw: Mapping[str, Any]) -> tuple[str, int]:
    record = (raw.get("spec") or {}).get("record") or {}
    return str((record.get("evidence") or {}).get("incident")), int(record.get("attempt") or 0)
