"""Clicks → decisions: who it is and what is true are read at the click, then the policy judges.

Two clicks at once are judged one after the other; the second finds the first one's decision. Nothing is said
to be approved here: that is said once it has been read back from Git.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from bot.approval import (
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
from bot.incident import Decision, Ending, Event, State, Why
from bot.lifecycle.cluster import ClusterSync
from bot.lifecycle.desk import Case, Desk
from bot.lifecycle.threads import Chat, ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.message import answer
from bot.message.root import APPROVE, REJECT, RESOLVE

log = structlog.get_logger("bot.lifecycle")

VIA: Final = "slack"

_VALUE: Final = re.compile(r"([a-z0-9.-]{1,270}) ([0-9]{1,9}) ([0-9a-f]{16})")


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button of ours that somebody pressed. `value` came with it, `reason` from the modal."""

    action: str
    user: str
    value: str
    reason: str = ""


class Decisions:
    """Takes clicks. `report_interval` is the agents' interval, by which a report counts as recent."""

    def __init__(self, desk: Desk, chat: Chat, cluster: ClusterSync, report_interval: timedelta) -> None:
        self._desk = desk
        self._chat = chat
        self._cluster = cluster
        self._interval = report_interval

    async def press(self, pressed: Pressed) -> Denied | None:
        """Judge a click; returns why it decided nothing, None when it counts."""
        click = await self._click(pressed)
        case = self._desk.cases.get(click.incident)
        known = Denial.UNKNOWN_INCIDENT if self._desk.read_git else Denial.STARTING
        denied: Denied | None = Denied(known)
        if case is not None:
            async with case.lock:
                denied = await self._judge(pressed.action, click, case)
        if denied is not None:
            self._desk.metrics.denied.labels(denied.why.value).inc()
            log.info(
                "click_denied", incident=click.incident, user=pressed.user, action=pressed.action,
                reason=denied.why.value,
            )  # fmt: skip
        return denied

    async def still_right(self, case: Case) -> bool:
        """Judge a decision once more right before it is recorded; drops it when it would be denied now."""
        incident, click = case.incident, case.click
        made = incident.decision
        if click is None or made is None:
            return True
        verdict: Denied | None
        if made.approves:
            world = await self._cluster.world(incident, self._interval)
            verdict = decide_again(click, incident, self._desk.config, world)
        else:
            person = identify(click, self._desk.config)
            verdict = person if isinstance(person, Denied) else None
        if verdict is None or verdict.why is Denial.WORLD_UNREADABLE:
            return verdict is None
        if case.incident.state is State.DECIDING:
            log.info("decision_dropped", incident=incident.id, reason=verdict.why.value)
            self._desk.metrics.denied.labels(verdict.why.value).inc()
            self._desk.follow(case, Event.DECISION_DROPPED, decision=None)
            case.looked_at = None
            await self._tell(click, verdict)
        return False

    async def overtaken(self, case: Case) -> None:
        """Tell whose decision waited that another one stands in Git."""
        click, made = case.click, case.incident.decision
        case.click = None
        if click is not None and made is not None and made.person.slack != click.user:
            await self._tell(click, Denied(Denial.ALREADY_DECIDED, made.person.name, made.at))

    async def _tell(self, click: Click, denied: Denied) -> None:
        try:
            await self._chat.whisper(self._chat.channel, click.user, answer.denied(denied))
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("answer_not_delivered", user=click.user, reason=str(error))

    async def _judge(self, action: str, click: Click, case: Case) -> Denied | None:
        if action == APPROVE:
            return await self._approve(click, case)
        if action == REJECT:
            return self._reject(click, case)
        return self._reopen(action, click, case)

    async def _approve(self, click: Click, case: Case) -> Denied | None:
        world = await self._cluster.world(case.incident, self._interval)
        verdict = decide(click, case.incident, self._desk.config, world, self._desk.now())
        if isinstance(verdict, Denied):
            # What has changed is looked at again at once, so that people soon see what they may approve now.
            case.looked_at = None if verdict.why is Denial.PLAN_CHANGED else case.looked_at
            self._desk.bell.ring()
            return verdict
        return self._decided(click, case, verdict, approves=True)

    def _reject(self, click: Click, case: Case) -> Denied | None:
        verdict = decide_rejection(click, case.incident, self._desk.config, self._desk.now())
        if isinstance(verdict, Denied):
            return verdict
        return self._decided(click, case, verdict, approves=False)

    def _decided(self, click: Click, case: Case, granted: Granted, *, approves: bool) -> Denied | None:
        made = Decision(
            attempt=case.incident.attempt,
            approves=approves,
            person=granted.person,
            at=self._desk.now(),
            expires_at=granted.expires_at,
            via=VIA,
            evidence_digest=case.incident.evidence_digest,
            reason=click.reason,
        )
        case.click = click
        self._desk.follow(case, Event.DECIDED, decision=made)
        log.info("decision_made", incident=case.incident.id, approves=approves, person=granted.person.email)
        return None

    def _reopen(self, action: str, click: Click, case: Case) -> Denied | None:
        verdict = decide_reopening(click, case.incident, self._desk.config)
        if isinstance(verdict, Denied):
            return verdict
        now = self._desk.now()
        if action == RESOLVE:
            ending = Ending(Why.RESOLVED, now, verdict.person.name)
            moved = self._desk.follow(case, Event.RESOLVED, ending=ending)
        else:
            moved = self._desk.follow(case, Event.RENEWED, offer=None, offer_from=now)
            case.looked_at = None
        log.info("incident_reopened", incident=case.incident.id, action=action, person=verdict.person.email)
        return None if moved else Denied(Denial.SUPERSEDED)

    async def _click(self, pressed: Pressed) -> Click:
        found = _VALUE.fullmatch(pressed.value)
        incident, revision, stamp = found.groups() if found else ("", "0", "")
        try:
            account = await self._chat.account(pressed.user)
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("account_unreadable", user=pressed.user, reason=str(error))
            account = None
        return Click(pressed.user, account, incident, int(revision), stamp, pressed.reason)
