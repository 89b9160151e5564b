"""Clicks → decisions: the person and the state of the node are read at the click, then the policy decides.

Two clicks at once are judged one after the other: the second finds the decision of the first. Nobody reads
"approved" before the decision has been read back from Git.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from bot.chat import Chat, ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.incidents.approve import (
    DecisionRequest,
    Denial,
    Denied,
    Granted,
    decide,
    decide_again,
    decide_rejection,
    decide_reopening,
    identify,
)
from bot.incidents.incident import Closure, Decision, IncidentEvent, State
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.kubernetes import KubernetesLoop
from bot.messages import answer
from bot.messages.root import APPROVE, REJECT, RESOLVE
from reconciler.incidents.records import CloseReason

log = structlog.get_logger("bot.lifecycle")

VIA: Final = "slack"

_VALUE: Final = re.compile(r"([a-z0-9.-]{1,270}) ([0-9]{1,9}) ([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class ButtonClick:
    """A click on one of our buttons. `value` is the value of the button, `reason` comes from the modal."""

    action: str
    user: str
    value: str
    reason: str = ""


class Decisions:
    """Judges clicks. `report_interval` is the interval of the agents, which says when a report is stale."""

    def __init__(
        self, store: IncidentStore, chat: Chat, kubernetes: KubernetesLoop, report_interval: timedelta
    ) -> None:
        self._store = store
        self._chat = chat
        self._kubernetes = kubernetes
        self._interval = report_interval

    async def click(self, clicked: ButtonClick) -> Denied | None:
        """Judge a click; return why it decides nothing, None when it counts."""
        request = await self._request(clicked)
        open_incident = self._store.by_id.get(request.incident)
        known = Denial.UNKNOWN_INCIDENT if self._store.read_git else Denial.STARTING
        denied: Denied | None = Denied(known)
        if open_incident is not None:
            async with open_incident.lock:
                denied = await self._judge(clicked.action, request, open_incident)
        if denied is not None:
            self._store.metrics.denied.labels(denied.why.value).inc()
            log.info(
                "click_denied", incident=request.incident, user=clicked.user, action=clicked.action,
                reason=denied.why.value,
            )  # fmt: skip
        return denied

    async def still_holds(self, open_incident: OpenIncident) -> bool:
        """Judge a decision again right before it is recorded; drop it when it would be denied now."""
        incident, request = open_incident.incident, open_incident.request
        made = incident.decision
        if request is None or made is None:
            return True
        verdict: Denied | None
        if made.approves:
            node = await self._kubernetes.observe(incident, self._interval)
            verdict = decide_again(request, incident, self._store.config, node)
        else:
            person = identify(request, self._store.config)
            verdict = person if isinstance(person, Denied) else None
        if verdict is None or verdict.why is Denial.NODE_UNREADABLE:
            return verdict is None
        if open_incident.incident.state is State.DECIDING:
            log.info("decision_dropped", incident=incident.id, reason=verdict.why.value)
            self._store.metrics.denied.labels(verdict.why.value).inc()
            self._store.transition(open_incident, IncidentEvent.DECISION_DROPPED, decision=None)
            open_incident.pods_read_at = None
            await self._notify(request, verdict)
        return False

    async def tell_if_superseded(self, open_incident: OpenIncident) -> None:
        """Tell the person whose decision was not recorded that Git holds another one."""
        request, made = open_incident.request, open_incident.incident.decision
        open_incident.request = None
        if request is not None and made is not None and made.person.slack != request.user:
            await self._notify(request, Denied(Denial.ALREADY_DECIDED, made.person.name, made.at))

    async def _notify(self, request: DecisionRequest, denied: Denied) -> None:
        try:
            await self._chat.post_ephemeral(self._chat.channel, request.user, answer.denied(denied))
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("answer_not_delivered", user=request.user, reason=str(error))

    async def _judge(
        self, action: str, request: DecisionRequest, open_incident: OpenIncident
    ) -> Denied | None:
        if action == APPROVE:
            return await self._approve(request, open_incident)
        if action == REJECT:
            return self._reject(request, open_incident)
        return self._reopen(action, request, open_incident)

    async def _approve(self, request: DecisionRequest, open_incident: OpenIncident) -> Denied | None:
        node = await self._kubernetes.observe(open_incident.incident, self._interval)
        verdict = decide(request, open_incident.incident, self._store.config, node, self._store.now())
        if isinstance(verdict, Denied):
            # Read the pods again at once, so that people soon see what they may approve now.
            open_incident.pods_read_at = (
                None if verdict.why is Denial.PLAN_CHANGED else open_incident.pods_read_at
            )
            self._store.changed.notify()
            return verdict
        return self._decided(request, open_incident, verdict, approves=True)

    def _reject(self, request: DecisionRequest, open_incident: OpenIncident) -> Denied | None:
        verdict = decide_rejection(request, open_incident.incident, self._store.config, self._store.now())
        if isinstance(verdict, Denied):
            return verdict
        return self._decided(request, open_incident, verdict, approves=False)

    def _decided(
        self, request: DecisionRequest, open_incident: OpenIncident, granted: Granted, *, approves: bool
    ) -> Denied | None:
        made = Decision(
            attempt=open_incident.incident.attempt,
            approves=approves,
            person=granted.person,
            at=self._store.now(),
            expires_at=granted.expires_at,
            via=VIA,
            evidence_digest=open_incident.incident.evidence_digest,
            reason=request.reason,
        )
        open_incident.request = request
        self._store.transition(open_incident, IncidentEvent.DECIDED, decision=made)
        log.info(
            "decision_made",
            incident=open_incident.incident.id,
            approves=approves,
            person=granted.person.email,
        )
        return None

    def _reopen(self, action: str, request: DecisionRequest, open_incident: OpenIncident) -> Denied | None:
        verdict = decide_reopening(request, open_incident.incident, self._store.config)
        if isinstance(verdict, Denied):
            return verdict
        now = self._store.now()
        if action == RESOLVE:
            ending = Closure(CloseReason.RESOLVED, now, verdict.person.name)
            moved = self._store.transition(open_incident, IncidentEvent.RESOLVED, ending=ending)
        else:
            moved = self._store.transition(open_incident, IncidentEvent.RENEWED, offer=None, offer_from=now)
            open_incident.pods_read_at = None
        log.info(
            "incident_reopened",
            incident=open_incident.incident.id,
            action=action,
            person=verdict.person.email,
        )
        return None if moved else Denied(Denial.SUPERSEDED)

    async def _request(self, clicked: ButtonClick) -> DecisionRequest:
        found = _VALUE.fullmatch(clicked.value)
        incident, revision, offer_digest = found.groups() if found else ("", "0", "")
        try:
            account = await self._chat.account(clicked.user)
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("account_unreadable", user=clicked.user, reason=str(error))
            account = None
        return DecisionRequest(clicked.user, account, incident, int(revision), offer_digest, clicked.reason)
