"""The state of an incident in words, with the steps of its repair. Pure."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from bot.incidents.incident import Decision, Incident, State
from bot.messages import words
from bot.messages.blocks import escape, when
from reconciler.incidents.progress import Phase, StepState
from reconciler.incidents.records import CloseReason, RepairOutcome
from reconciler.kube.results import TAINT
from reconciler.repair.step import StepWords
from reconciler.repair.steps.cordon import CORDON

REASON: Final = 400
"""Characters kept of a reason that a person or a program gave."""


def state_line(incident: Incident, *, trouble: str = "") -> str:
    """Return the state of the incident in words; `trouble` names what keeps the bot from going on."""
    lines = [*_lines(incident)]
    if incident.clear_since is not None and not incident.state.may_repair and incident.ending is None:
        lines.append(f"The findings are gone since {when(incident.clear_since)}. {_if_gone(incident)}")
    if trouble:
        lines.append(f"\N{WARNING SIGN} {escape(trouble, REASON)}")
    return "\n".join(lines)


def _if_gone(incident: Incident) -> str:
    if incident.state is State.HELD:
        return "The incident stays open until a person marks it as fixed."
    return "If they stay away, the incident closes by itself."


def _lines(incident: Incident) -> Iterator[str]:
    match incident.state:
        case State.OPEN:
            yield from _open(incident)
        case State.LAPSED:
            at = f" at {when(incident.offer.expires_at)}" if incident.offer else ""
            yield f"*Nobody decided:* the offer lapsed{at}."
            yield from _earlier_repair(incident)
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
        yield f"{decided(decision)}. This is not yet recorded in Git, and nothing happens until it is."
    elif incident.state is State.APPROVED:
        yield f"{decided(decision)}. This is recorded in Git; next, the reconciler starts the repair."
    else:
        yield f"{decided(decision)}: {escape(decision.reason, REASON)}"
        yield from _earlier_repair(incident)


def _earlier_repair(incident: Incident) -> Iterator[str]:
    if incident.outcomes:
        yield from left_on_node(incident.outcomes[-1])
    else:
        yield "Nothing was done to the node."


def _open(incident: Incident) -> Iterator[str]:
    if incident.outcomes:
        yield ended(incident.outcomes[-1])
        yield from left_on_node(incident.outcomes[-1])
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
        if entry is not None and entry.state is StepState.DONE:
            at = f" {entry.finished_at:%H:%M:%SZ}" if entry.finished_at else ""
            yield f"\N{HEAVY CHECK MARK}{at} {said.done}"
        elif name == progress.step and not progress.phase.final:
            note = f": {escape(progress.message, REASON)}" if progress.message else ""
            yield f"\N{BLACK RIGHT-POINTING TRIANGLE} *{said.doing}*{note}"
        else:
            yield f"\N{MIDDLE DOT} {said.done}"


def _held(incident: Incident) -> Iterator[str]:
    if not incident.outcomes:
        yield "*Held.* A person has to look at the node."
        return
    outcome = incident.outcomes[-1]
    yield f"*Held:* {escape(outcome.reason, REASON)}.{owner(outcome)}"
    yield from left_on_node(outcome)
    yield "Look at the node. When it is healthy, press *Mark as fixed*."


def owner(outcome: RepairOutcome) -> str:
    """Return who takes over a held repair, as a sentence after another one; empty for nobody."""
    return f" Owner: {escape(outcome.held_by, words.NAME)}." if outcome.held_by else ""


def left_on_node(outcome: RepairOutcome) -> Iterator[str]:
    """Yield what a repair that did not succeed left on the node, and how to remove it."""
    if outcome.phase is Phase.SUCCEEDED:
        return
    if outcome.started_at is None:
        yield "Nothing was done to the node."
    elif CORDON.name in outcome.kept:
        node = escape(outcome.node, words.NAME)
        put_back = f"`kubectl uncordon {node}` and `kubectl taint nodes {node} {TAINT}-`"
        yield f"The repair left the node cordoned. When it is healthy, {put_back} put it back into service."
    else:
        yield "The repair removed its own cordon."
    others = [words.step_words(outcome.action, each).done for each in outcome.kept if each != CORDON.name]
    if others:
        yield f"Still in place: {escape(', '.join(others), REASON)}."


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
            yield f"*Closed* at {at}: the findings cleared and stayed away."
            yield from _earlier_repair(incident)
        case CloseReason.NODE_GONE:
            yield f"*Closed* at {at}: the node is no longer in the cluster."
        case CloseReason.RESOLVED:
            yield f"*Closed* at {at}: {escape(ending.by, words.NAME)} marked the incident as fixed."
            yield from _earlier_repair(incident)
        case _:
            yield f"*Closed* in Git, seen at {at}."
            yield from _earlier_repair(incident)


_PHASES: Final = {
    Phase.SUCCEEDED: "Repaired",
    Phase.FAILED: "The repair failed",
    Phase.CANCELLED: "The repair was cancelled",
    Phase.LAPSED: "The approval lapsed",
    Phase.HELD: "The repair is held",
}


def ended(outcome: RepairOutcome) -> str:
    """Return how a repair ended, with its duration, its reason and the change of the boot ID."""
    title = _PHASES.get(outcome.phase, outcome.phase.value)
    took = ""
    if outcome.started_at is not None:
        after = "in" if outcome.phase is Phase.SUCCEEDED else "after"
        took = f" {after} {words.span(max(outcome.finished_at - outcome.started_at, timedelta(0)))}"
    reason = f": {escape(outcome.reason, REASON)}" if outcome.reason else ""
    boots = ""
    if outcome.new_boot_id and outcome.new_boot_id != outcome.old_boot_id:
        old, new = escape(outcome.old_boot_id, words.NAME), escape(outcome.new_boot_id, words.NAME)
        boots = f" The boot ID changed from `{old}` to `{new}`."
    return f"*{title}*{took}{reason}.{boots}"
