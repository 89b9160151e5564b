"""The line that says where an incident stands, with the steps of a repair as they are done. Pure."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from bot.incidents.incident import Decision, Incident, State
from bot.messages import words
from bot.messages.blocks import escape, when
from reconciler.incidents.progress import Phase, StepState
from reconciler.incidents.records import CloseReason, RepairOutcome
from reconciler.repair.step import StepWords

REASON: Final = 400
"""Characters kept of a reason that a person or a program gave."""


def state_line(incident: Incident, *, trouble: str = "") -> str:
    """Return where the incident stands; `trouble` names what keeps it from going on."""
    lines = [*_standing(incident)]
    if incident.clear_since is not None and not incident.state.may_repair and incident.ending is None:
        lines.append(f"Not seen since {when(incident.clear_since)}; closes by itself if that lasts.")
    if trouble:
        lines.append(f"\N{WARNING SIGN} {escape(trouble, REASON)}")
    return "\n".join(lines)


def _standing(incident: Incident) -> Iterator[str]:
    match incident.state:
        case State.OPEN:
            yield from _open(incident)
        case State.LAPSED:
            at = f" at {when(incident.offer.expires_at)}" if incident.offer else ""
            yield f"*Nobody decided:* the offer lapsed{at} and the findings still stand."
        case State.REPAIRING:
            yield from _repairing(incident)
        case State.HELD:
            yield from _held(incident)
        case State.CLOSED:
            yield from _closed(incident)
        case _:
            yield from _after_decision(incident)


def _after_decision(incident: Incident) -> Iterator[str]:
    decision = incident.decision
    if decision is None:
        yield f"*{words.STATES[incident.state].capitalize()}.*"
    elif incident.state is State.DECIDING:
        yield f"{decided(decision)}, not yet recorded in Git. Nothing happens before it is."
    elif incident.state is State.APPROVED:
        yield f"{decided(decision)}. Recorded; the reconciler takes it from here."
    else:
        yield f"{decided(decision)}: {escape(decision.reason, REASON)}"


def _open(incident: Incident) -> Iterator[str]:
    if incident.outcomes:
        yield ended(incident.outcomes[-1])
    if incident.offer is None:
        pods = f"kubectl get pods -A --field-selector spec.nodeName={incident.node}"
        yield "*Nothing to approve.* A person has to look at the node:"
        yield f"`kubectl describe node {incident.node}` and `{pods}`"
    else:
        yield f"*Waiting for a decision* until {when(incident.offer.expires_at)}."


def decided(decision: Decision) -> str:
    """Return what was decided, by whom and when."""
    verb = "Approved" if decision.approves else "Declined"
    return f"*{verb}* by {escape(decision.person.name, words.NAME)} at {when(decision.at)}"


def _repairing(incident: Incident) -> Iterator[str]:
    yield f"{decided(incident.decision)}." if incident.decision else "*Being repaired.*"
    yield from step_lines(incident)


def step_lines(incident: Incident) -> Iterator[str]:
    """Yield one line for each step of the repair: done, being done, or still to come."""
    progress, offer = incident.progress, incident.offer
    if progress is None:
        return
    entries = {entry.name: entry for entry in progress.steps}
    planned = offer.plan.steps if offer else tuple(entries)
    for name in planned:
        entry = entries.get(name)
        said = words.step_words(offer.plan.action, name) if offer else StepWords(doing=name, done=name)
        done, doing = said.done, said.doing
        if entry is not None and entry.state is StepState.DONE:
            note = f": {escape(entry.message, 120)}" if entry.message not in ("", done) else ""
            at = f" {entry.finished_at:%H:%M:%SZ}" if entry.finished_at else ""
            yield f"\N{HEAVY CHECK MARK}{at} {done}{note}"
        elif name == progress.step and not progress.phase.final:
            note = f": {escape(progress.message, REASON)}" if progress.message else ""
            yield f"\N{BLACK RIGHT-POINTING TRIANGLE} *{doing}*{note}"
        else:
            yield f"\N{MIDDLE DOT} {done}"


def _held(incident: Incident) -> Iterator[str]:
    if not incident.outcomes:
        yield "*Held.* A person has to look at the node."
        return
    outcome = incident.outcomes[-1]
    owner = f" Owner: {escape(outcome.held_by, words.NAME)}." if outcome.held_by else ""
    yield f"*Held:* {escape(outcome.reason, REASON)}.{owner} The node may still be cordoned."


def _closed(incident: Incident) -> Iterator[str]:
    ending = incident.ending
    if ending is None:
        yield "*Closed.*"
        return
    at = when(ending.at)
    match ending.why:
        case CloseReason.REPAIRED if incident.outcomes:
            yield ended(incident.outcomes[-1])
            yield f"*Closed* at {at}, {words.span(ending.at - incident.opened_at)} after it opened."
        case CloseReason.CLEARED:
            yield f"*Closed* at {at}: the findings cleared and stayed away. Nothing was done to the node."
        case CloseReason.NODE_GONE:
            yield f"*Closed* at {at}: the node is not in the cluster any more."
        case CloseReason.RESOLVED:
            by = escape(ending.by, words.NAME)
            yield f"*Closed* at {at}: {by} says that the node is in order."
        case _:
            yield f"*Closed* in Git, seen at {at}."


_PHASES: Final = {
    Phase.SUCCEEDED: "Repaired",
    Phase.FAILED: "The repair failed",
    Phase.CANCELLED: "The repair was cancelled",
    Phase.LAPSED: "The approval lapsed",
    Phase.HELD: "The repair is held",
}


def ended(outcome: RepairOutcome) -> str:
    """Return how a repair ended, in one sentence with its duration and boot ids."""
    title = _PHASES.get(outcome.phase, outcome.phase.value)
    took = ""
    if outcome.started_at is not None:
        after = "in" if outcome.phase is Phase.SUCCEEDED else "after"
        took = f" {after} {words.span(max(outcome.finished_at - outcome.started_at, timedelta(0)))}"
    reason = f": {escape(outcome.reason, REASON)}" if outcome.reason else ""
    boots = ""
    if outcome.new_boot_id and outcome.new_boot_id != outcome.old_boot_id:
        old, new = escape(outcome.old_boot_id, words.NAME), escape(outcome.new_boot_id, words.NAME)
        boots = f" Boot `{old}` is now `{new}`."
    return f"*{title}*{took}{reason}.{boots}"
