"""The milestones of an incident as replies in its thread. Pure.

Each has a key that names the moment; what was posted is known by key, so none comes twice, whatever crashed.
The root is edited and notifies nobody; a reply notifies those who follow the thread, so it is kept for news.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bot.incidents.incident import Incident, State
from bot.messages import words
from bot.messages.blocks import Message, escape, section, when
from bot.messages.root import sentence
from bot.messages.state_line import REASON, decided, ended
from checks.finding import Action
from reconciler.incidents.digests import digest
from reconciler.incidents.progress import BlockedPod, JournalEntry, StepState
from reconciler.incidents.records import CloseReason, Decider
from reconciler.repair.resource import RepairStatus
from reconciler.repair.steps.await_return import RETURN

ACCOUNT: Final = re.compile(r"[UW][A-Z0-9]{2,20}")
"""A Slack account's id; nothing else is ever put into a mention."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One milestone. `key` is unique within the incident."""

    key: str
    message: Message


def replies(incident: Incident) -> tuple[Reply, ...]:
    """Return every milestone that the incident has passed, in order, as far as it is known now."""
    lines = [*_offers(incident), *_decisions(incident), *_progress(incident), *_ends(incident)]
    return tuple(Reply(key, Message(_spoken(line), (section(line),))) for key, line in lines)


def _offers(incident: Incident) -> Iterator[tuple[str, str]]:
    if incident.worsened and not incident.state.may_repair:
        text = escape(sentence(incident), REASON)
        yield f"worse-{incident.evidence_digest}", f"*Worse findings have arrived.* {text}"
    if incident.state is State.LAPSED and incident.offer is not None:
        at = incident.offer.expires_at
        yield f"lapsed-{int(at.timestamp())}", f"*Nobody decided* by {when(at)}, so the offer lapsed."


def _decisions(incident: Incident) -> Iterator[tuple[str, str]]:
    decision = incident.decision
    if decision is None or incident.state is State.DECIDING:
        return
    number = decision.attempt
    if not decision.approves:
        reason = escape(decision.reason, REASON)
        yield f"declined-{int(decision.at.timestamp())}", f"{decided(decision)}: {reason}"
        return
    what = words.action_words(incident.offer.plan.action).noun if incident.offer else "the repair"
    lapses = when(decision.expires_at)
    record = f"`{incident.path}/repair-{number}.yaml`"
    until = f"Recorded as {record}; unused, it lapses at {lapses}."
    yield f"approved-{number}", f"{decided(decision)}: {what} of `{incident.node}`. {until}"


def _progress(incident: Incident) -> Iterator[tuple[str, str]]:
    progress = incident.progress
    if progress is None or not incident.state.may_repair:
        return
    if incident.decision is None or incident.offer is None:
        return
    action = incident.offer.plan.action
    yield from _steps(action, progress.steps, incident.attempt, progress.new_boot_id)
    blocked = blocked_pods(progress)
    if blocked:
        # The same pods behind the same budgets are one piece of news, however many others have gone.
        key = digest([pod.model_dump(mode="json", exclude={"reason"}) for pod in blocked])
        yield (
            f"blocked-{incident.attempt}-{key}",
            f"*The drain is blocked.* {escape(progress.message, REASON)}",
        )


def _steps(
    action: Action, entries: tuple[JournalEntry, ...], attempt: int, boot: str
) -> Iterator[tuple[str, str]]:
    for entry in entries:
        news = words.step_words(action, entry.name).news
        if news == "begun" and entry.destructive:
            yield f"{entry.name}-{attempt}", _begun(action, entry)
        elif news == "done" and entry.state is StepState.DONE:
            yield f"{entry.name}-{attempt}", _done(action, entry, boot)


def blocked_pods(progress: RepairStatus) -> tuple[BlockedPod, ...]:
    """Return the pods whose eviction is refused now, which a person may clear away."""
    entry = next((each for each in reversed(progress.steps) if each.name == progress.step), None)
    if progress.phase.final or entry is None or entry.drain is None:
        return ()
    return entry.drain.blocked


def _begun(action: Action, entry: JournalEntry) -> str:
    return (
        f"*{words.sentence_case(words.step_words(action, entry.name).doing)}* since {when(entry.started_at)}."
    )


def _done(action: Action, entry: JournalEntry, boot: str) -> str:
    done = words.step_words(action, entry.name).done
    at = f" at {when(entry.finished_at)}" if entry.finished_at else ""
    note = f": {escape(entry.message, REASON)}" if entry.message and entry.message != done else ""
    booted = f" The boot is now `{escape(boot, words.NAME)}`." if boot and entry.name == RETURN else ""
    return f"*{words.sentence_case(done)}*{at}{note}.{booted}"


def _ends(incident: Incident) -> Iterator[tuple[str, str]]:
    for outcome in incident.outcomes:
        yield from _steps(outcome.action, outcome.steps, outcome.attempt, outcome.new_boot_id)
        person = _mention(incident.decision.person) if incident.decision else ""
        owner = f" Owner: {escape(outcome.held_by, words.NAME)}." if outcome.held_by else ""
        yield f"outcome-{outcome.attempt}", f"{person}{ended(outcome)}{owner}"
    ending = incident.ending
    if ending is not None:
        took = words.span(ending.at - incident.opened_at)
        yield "closed", f"*Closed* at {when(ending.at)}, {took} after it opened. {_WHY[ending.why]}"


_WHY: Final = {
    CloseReason.REPAIRED: "The repair succeeded.",
    CloseReason.CLEARED: "The findings cleared and stayed away; nothing was done to the node.",
    CloseReason.NODE_GONE: "The node is not in the cluster any more.",
    CloseReason.RESOLVED: "A person says that the node is in order.",
    CloseReason.RECORDED: "It was closed in Git.",
}


def _mention(person: Decider) -> str:
    account = person.slack or ""
    return f"<@{account}> " if ACCOUNT.fullmatch(account) else ""


def _spoken(line: str) -> str:
    """Return a line for notifications and screen readers: without the marks of our own styling."""
    return line.replace("*", "").replace("`", "")
