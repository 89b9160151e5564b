"""Clicks → decisions: who it is and what is true are read at the click, then the policy judges.

Two clicks at once are judged one after the other; the second finds the first one's decision. Nothing is said
to be approved here: that is said once it has been read back from Git.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from bot.chat import Chat, ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.incidents.approve import (
    Click,
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
class ButtonPress:
    """A button of ours that somebody pressed. `value` came with it, `reason` from the modal."""

    action: str
    user: str
    value: str
    reason: str = ""


class Decisions:
    """Takes clicks. `report_interval` is the agents' interval, by which a report counts as recent."""

    def __init__(
        self, store: IncidentStore, chat: Chat, cluster: KubernetesLoop, report_interval: timedelta
    ) -> None:
        self._store = store
        self._chat = chat
        self._cluster = cluster
        self._interval = report_interval

    async def press(self, pressed: ButtonPress) -> Denied | None:
        """Judge a click; returns why it decided nothing, None when it counts."""
        click = await self._click(pressed)
        open_incident = self._store.by_id.get(click.incident)
        known = Denial.UNKNOWN_INCIDENT if self._store.read_git else Denial.STARTING
        denied: Denied | None = Denied(known)
        if open_incident is not None:
            async with open_incident.lock:
                denied = await self._judge(pressed.action, click, open_incident)
        if denied is not None:
            self._store.metrics.denied.labels(denied.why.value).inc()
            log.info(
                "click_denied", incident=click.incident, user=pressed.user, action=pressed.action,
                reason=denied.why.value,
            )  # fmt: skip
        return denied

    async def still_right(self, open_incident: OpenIncident) -> bool:
        """Judge a decision once more right before it is recorded; drops it when it would be denied now."""
        incident, click = open_incident.incident, open_incident.click
        made = incident.decision
        if click is None or made is None:
            return True
        verdict: Denied | None
        if made.approves:
            world = await self._cluster.world(incident, self._interval)
            verdict = decide_again(click, incident, self._store.config, world)
        else:
            person = identify(click, self._store.config)
            verdict = person if isinstance(person, Denied) else None
        if verdict is None or verdict.why is Denial.WORLD_UNREADABLE:
            return verdict is None
        if open_incident.incident.state is State.DECIDING:
            log.info("decision_dropped", incident=incident.id, reason=verdict.why.value)
            self._store.metrics.denied.labels(verdict.why.value).inc()
            self._store.follow(open_incident, IncidentEvent.DECISION_DROPPED, decision=None)
            open_incident.looked_at = None
            await self._tell(click, verdict)
        return False

    async def overtaken(self, open_incident: OpenIncident) -> None:
        """Tell whose decision waited that another one stands in Git."""
        click, made = open_incident.click, open_incident.incident.decision
        open_incident.click = None
        if click is not None and made is not None and made.person.slack != click.user:
            await self._tell(click, Denied(Denial.ALREADY_DECIDED, made.person.name, made.at))

    async def _tell(self, click: Click, denied: Denied) -> None:
        try:
            await self._chat.whisper(self._chat.channel, click.user, answer.denied(denied))
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("answer_not_delivered", user=click.user, reason=str(error))

    async def _judge(self, action: str, click: Click, open_incident: OpenIncident) -> Denied | None:
        if action == APPROVE:
            return await self._approve(click, open_incident)
        if action == REJECT:
            return self._reject(click, open_incident)
        return self._reopen(action, click, open_incident)

    async def _approve(self, click: Click, open_incident: OpenIncident) -> Denied | None:
        world = await self._cluster.world(open_incident.incident, self._interval)
        verdict = decide(click, open_incident.incident, self._store.config, world, self._store.now())
        if isinstance(verdict, Denied):
            # What has changed is looked at again at once, so that people soon see what they may approve now.
            open_incident.looked_at = None if verdict.why is Denial.PLAN_CHANGED else open_incident.looked_at
            self._store.changed.notify()
            return verdict
        return self._decided(click, open_incident, verdict, approves=True)

    def _reject(self, click: Click, open_incident: OpenIncident) -> Denied | None:
        verdict = decide_rejection(click, open_incident.incident, self._store.config, self._store.now())
        if isinstance(verdict, Denied):
            return verdict
        return self._decided(click, open_incident, verdict, approves=False)

    def _decided(
        self, click: Click, open_incident: OpenIncident, granted: Granted, *, approves: bool
    ) -> Denied | None:
        made = Decision(
            attempt=open_incident.incident.attempt,
            approves=approves,
            person=granted.person,
            at=self._store.now(),
            expires_at=granted.expires_at,
            via=VIA,
            evidence_digest=open_incident.incident.evidence_digest,
            reason=click.reason,
        )
        open_incident.click = click
        self._store.follow(open_incident, IncidentEvent.DECIDED, decision=made)
        log.info(
            "decision_made",
            incident=open_incident.incident.id,
            approves=approves,
            person=granted.person.email,
        )
        return None

    def _reopen(self, action: str, click: Click, open_incident: OpenIncident) -> Denied | None:
        verdict = decide_reopening(click, open_incident.incident, self._store.config)
        if isinstance(verdict, Denied):
            return verdict
        now = self._store.now()
        if action == RESOLVE:
            ending = Closure(CloseReason.RESOLVED, now, verdict.person.name)
            moved = self._store.follow(open_incident, IncidentEvent.RESOLVED, ending=ending)
        else:
            moved = self._store.follow(open_incident, IncidentEvent.RENEWED, offer=None, offer_from=now)
            open_incident.looked_at = None
        log.info(
            "incident_reopened",
            incident=open_incident.incident.id,
            action=action,
            person=verdict.person.email,
        )
        return None if moved else Denied(Denial.SUPERSEDED)

    async def _click(self, pressed: ButtonPress) -> Click:
        found = _VALUE.fullmatch(pressed.value)
        incident, revision, stamp = found.groups() if found else ("", "0", "")
        try:
            account = await self._chat.account(pressed.user)
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("account_unreadable", user=pressed.user, reason=str(error))
            account = None
        return Click(pressed.user, account, incident, int(revision), stamp, pressed.reason)
