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

from bot.approval import World
from bot.correlate import SILENCE_REPORTS, faults
from bot.incident import Event, Incident, Offer, State
from bot.lifecycle.desk import Case, Desk
from bot.lifecycle.reports import ReportBook
from bot.recommend import PROVIDER, covers
from checks.finding import Action
from reconciler.observe import Observer, UnavailableError
from reconciler.repair import steps
from reconciler.repair.record import Phase, PlannedPod, RepairStatus, StepState, evidence_digest

log = structlog.get_logger("bot.lifecycle")

UNREADABLE = "Kubernetes cannot be read just now, so it is not known whom a repair would disturb."
"""What people see of an incident whose node's pods cannot be listed."""


class ClusterSync:
    """Keeps desk and cluster in line. `offer_lifetime` is how long buttons stand before an offer lapses."""

    def __init__(self, desk: Desk, book: ReportBook, observer: Observer, offer_lifetime: timedelta) -> None:
        self._desk = desk
        self._book = book
        self._observer = observer
        self._lifetime = offer_lifetime

    async def read_nodes(self) -> None:
        """Read every node once."""
        try:
            nodes = await asyncio.to_thread(self._observer.nodes)
        except UnavailableError as error:
            self._desk.report_trouble("kubernetes", str(error))
            return
        self._desk.report_trouble("kubernetes", "")
        first = self._desk.nodes is None
        self._desk.know(nodes)
        if first:
            self._desk.bell.ring()

    async def offer(self, refresh_after: timedelta) -> None:
        """Bring the offers in line with the pods on the nodes, for each incident that is due."""
        for case in list(self._desk.cases.values()):
            due = case.looked_at is None or self._desk.now() - case.looked_at >= refresh_after
            if due and case.incident.state is State.OPEN:
                await self._offer(case)

    async def follow_repairs(self) -> bool:
        """Read how repairs proceed; True when one has ended, so Git has or will have its outcome."""
        waiting = [case for case in self._desk.cases.values() if case.incident.state.may_repair]
        if not waiting and self._desk.reset_boots is not None:
            return False
        try:
            found = await asyncio.to_thread(self._observer.repairs)
        except UnavailableError as error:
            self._desk.report_trouble("kubernetes", str(error))
            return False
        self._desk.reset_boots = _reset_boots(found)
        by_incident = {_names(raw): raw for raw in found}
        ended = [self._progress(case, by_incident) for case in waiting]
        return any(ended)

    async def world(self, incident: Incident, report_interval: timedelta) -> World | None:
        """Read what an approval depends on; None when Kubernetes does not say."""
        try:
            node = await asyncio.to_thread(self._observer.node, incident.node)
            current = await self._disturbed(incident)
        except UnavailableError as error:
            self._desk.report_trouble("kubernetes", str(error))
            return None
        shown = incident.offer.plan.disturbs if incident.offer else ()
        known = {(pod.namespace, pod.name) for pod in shown}
        return World(
            node_uid=node.uid if node else None,
            boot_id=node.boot_id if node else "",
            covered=covers(shown, current),
            fresh=self._fresh(incident, report_interval),
            newcomers=tuple(pod for pod in current if (pod.namespace, pod.name) not in known),
        )

    def _fresh(self, incident: Incident, report_interval: timedelta) -> bool:
        held = self._book.newest(incident.node)
        if held is None or held.age_seconds > SILENCE_REPORTS * report_interval.total_seconds():
            return False
        found = faults(held.report).get(incident.cause)
        return (
            found is not None
            and evidence_digest(held.report.boot_id, found.findings) == incident.evidence_digest
        )

    async def _offer(self, case: Case) -> None:
        desk, incident = self._desk, case.incident
        node = (desk.nodes or {}).get(incident.node)
        if desk.config is None or node is None:
            return
        offered = desk.recommendation(incident).offered
        if offered is None:
            if incident.offer is not None:
                desk.follow(case, Event.OFFER_CHANGED, offer=None)
            self._looked(case, "")
            return
        try:
            current = await self._disturbed(incident)
        except UnavailableError as error:
            desk.report_trouble("kubernetes", str(error))
            self._looked(case, "" if incident.offer else UNREADABLE)
            return
        if case.incident.revision == incident.revision:
            self._renew(case, offered, current)
            self._looked(case, "")

    def _looked(self, case: Case, trouble: str) -> None:
        first, case.looked_at = case.looked_at is None, self._desk.now()
        was = case.trouble.pop("kubernetes", "")
        if trouble:
            case.trouble["kubernetes"] = trouble
        if first or was != trouble:
            self._desk.bell.ring()

    def _renew(self, case: Case, offered: Action, current: tuple[PlannedPod, ...]) -> None:
        incident = case.incident
        shown = incident.offer
        if shown and shown.plan.action is offered and covers(shown.plan.disturbs, current):
            return
        now = self._desk.now()
        offer = Offer(
            plan=steps.plan(offered, PROVIDER, current),
            offered_at=now,
            expires_at=incident.offer_from + self._lifetime,
        )
        self._desk.follow(case, Event.OFFER_CHANGED, offer=offer)
        if now >= offer.expires_at:
            self._desk.follow(case, Event.OFFER_LAPSED)

    async def _disturbed(self, incident: Incident) -> tuple[PlannedPod, ...]:
        pods, budgets = await asyncio.gather(
            asyncio.to_thread(self._observer.pods, incident.node), asyncio.to_thread(self._observer.budgets)
        )
        return steps.disturbs(pods, budgets)

    def _progress(self, case: Case, found: Mapping[tuple[str, int], Mapping[str, Any]]) -> bool:
        incident = case.incident
        number = incident.decision.attempt if incident.decision else incident.attempt
        raw = found.get((incident.id, number))
        if raw is None or not raw.get("status"):
            return False
        try:
            status = RepairStatus.model_validate(raw["status"])
        except ValidationError as error:
            # A newer reconciler's words: in progress, as far as we can tell.
            self._desk.report_trouble("repairs", " ".join(str(error).split())[:200])
            return False
        if incident.state is State.APPROVED and status.phase is not Phase.PENDING:
            self._desk.follow(case, Event.REPAIR_STARTED, progress=status)
        else:
            self._desk.update(case, progress=status)
        return status.phase.final


def _reset_boots(found: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return, by node, the boots in which a repair got as far as its reset."""
    boots: dict[str, frozenset[str]] = {}
    for raw in found:
        status = raw.get("status") or {}
        before = (status.get("preState") or {}).get("bootId")
        if before and any(_was_begun(each) for each in status.get("steps") or ()):
            evidence = ((raw.get("spec") or {}).get("record") or {}).get("evidence") or {}
            node = str(evidence.get("node"))
            boots[node] = boots.get(node, frozenset()) | {str(before)}
    return boots


def _was_begun(entry: Mapping[str, Any]) -> bool:
    return entry.get("name") == steps.RESET and entry.get("state") != StepState.NOT_DONE


def _names(raw: Mapping[str, Any]) -> tuple[str, int]:
    record = (raw.get("spec") or {}).get("record") or {}
    return str((record.get("evidence") or {}).get("incident")), int(record.get("attempt") or 0)
