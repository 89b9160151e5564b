"""The milestones of an incident as replies in its thread. Pure.

Each reply has a key. A posted reply is recognised by its key, so none is posted twice, even after a crash. An edit of
the root notifies nobody; a reply notifies everybody in the thread, so replies are only for news.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bot.incidents.incident import Incident, State
from bot.messages import words
from bot.messages.blocks import Message, escape, section, when
from bot.messages.root import sentence
from bot.messages.state_line import REASON, decided, ended, left_on_node, owner
from checks.finding import Action
from reconciler.incidents.digests import digest
from reconciler.incidents.paths import repair_name
from reconciler.incidents.progress import BlockedPod, JournalEntry, StepState
from reconciler.incidents.records import CloseReason, Decider
from reconciler.repair.resource import RepairStatus
from reconciler.repair.steps.await_return import RETURN

ACCOUNT: Final = re.compile(r"[UW][A-Z0-9]{2,20}")
"""The id of a Slack account; nothing else is ever mentioned."""


NAMED: Final = 3
"""Blocked pods that are named in a reply; the others are counted."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One milestone. `key` is unique within the incident."""

    key: str
    message: Message


def replies(incident: Incident) -> tuple[Reply, ...]:
    """Return every milestone that the incident has passed, in order."""
    lines = [*_offers(incident), *_decisions(incident), *_progress(incident), *_ends(incident)]
    return tuple(Reply(key, Message(_fallback_text(line), (section(line),))) for key, line in lines)


def _offers(incident: Incident) -> Iterator[tuple[str, str]]:
    if incident.worsened and not incident.state.may_repair:
        text = escape(sentence(incident), REASON)
        yield f"worse-{incident.evidence_digest}", f"*The findings got worse.* {text}"
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
    what = words.action_words(incident.offer.plan.action).noun if incident.offer else "repair"
    record = f"The record in Git is `{incident.path}/{repair_name(number)}`."
    lapses = f"If the repair has not started by {when(decision.expires_at)}, the approval lapses."
    yield f"approved-{number}", f"{decided(decision)}: {what} of `{incident.node}`. {record} {lapses}"


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
        # The same pods behind the same budgets are one piece of news, however many other pods have gone.
        key = digest([pod.model_dump(mode="json", exclude={"reason"}) for pod in blocked])
        yield f"blocked-{incident.attempt}-{key}", _blocked(blocked)


def _steps(
    action: Action, entries: tuple[JournalEntry, ...], attempt: int, boot: str
) -> Iterator[tuple[str, str]]:
    for entry in entries:
        news = words.step_words(action, entry.name).news
        if news == "begun" and entry.destructive:
            yield f"{entry.name}-{attempt}", _begun(action, entry)
        elif news == "done" and entry.state is StepState.DONE:
            yield f"{entry.name}-{attempt}", _done(action, entry, boot)


def _blocked(pods: tuple[BlockedPod, ...]) -> str:
    named = "; ".join(_blocked_pod(each) for each in pods[:NAMED])
    more = f"; and {words.plural(len(pods) - NAMED, 'more pod')}" if len(pods) > NAMED else ""
    return f"*The drain is blocked.* {named}{more}. The repair continues when these pods can be evicted or are deleted."


def _blocked_pod(pod: BlockedPod) -> str:
    name = f"`{escape(f'{pod.namespace}/{pod.name}', words.NAME)}`"
    if not pod.budgets:
        return f"{name} cannot be evicted: {escape(pod.reason, words.NAME)}"
    budgets = escape(", ".join(pod.budgets), words.NAME)
    return f"{name} cannot be evicted because of PodDisruptionBudget {budgets}"


def blocked_pods(progress: RepairStatus) -> tuple[BlockedPod, ...]:
    """Return the pods whose eviction the API server refuses now."""
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
    booted = f" The boot is now `{escape(boot, words.NAME)}`." if boot and entry.name == RETURN else ""
    return f"*{words.sentence_case(done)}*{at}.{booted}"


def _ends(incident: Incident) -> Iterator[tuple[str, str]]:
    for outcome in incident.outcomes:
        yield from _steps(outcome.action, outcome.steps, outcome.attempt, outcome.new_boot_id)
        person = _mention(incident.decision.person) if incident.decision else ""
        text = " ".join((f"{ended(outcome)}{owner(outcome)}", *left_on_node(outcome)))
        yield f"outcome-{outcome.attempt}", f"{person}{text}"
    ending = incident.ending
    if ending is not None:
        took = words.span(ending.at - incident.opened_at)
        yield "closed", f"*Closed* at {when(ending.at)}, {took} after it opened. {_WHY[ending.why]}"


_WHY: Final = {
    CloseReason.REPAIRED: "The repair succeeded.",
    CloseReason.CLEARED: "The findings cleared and stayed away.",
    CloseReason.NODE_GONE: "The node is no longer in the cluster.",
    CloseReason.RESOLVED: "A person marked it as fixed.",
    CloseReason.RECORDED: "It was closed in Git.",
}


def _mention(person: Decider) -> str:
    account = person.slack or ""
    return f"<@{account}> " if ACCOUNT.fullmatch(account) else ""


def _fallback_text(line: str) -> str:
    """Return a line for notifications and screen readers, without styling."""
    return line.replace("*", "").replace("`", "")
