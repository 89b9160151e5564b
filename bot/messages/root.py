"""The root message of a thread: everything that a person needs to decide at three in the morning. Pure.

From top to bottom: what is wrong, where and how badly; the evidence; the recommendation and its reason; which pods
it stops; the state; the buttons. The message is rendered again whenever something changes, never patched.
"""

from collections.abc import Iterator
from typing import Final

from bot.incidents.incident import Incident, State, worst
from bot.incidents.view import IncidentView
from bot.messages import words
from bot.messages.blocks import (
    Block,
    Message,
    button,
    confirm,
    context,
    escape,
    header,
    plain,
    preformatted,
    section,
    utc,
    when,
)
from bot.messages.state_line import state_line
from checks.finding import Finding
from reconciler.incidents.plan import Plan, PlannedPod
from reconciler.incidents.records import CloseReason

APPROVE: Final = "approve"
REJECT: Final = "reject"
RENEW: Final = "renew"
RESOLVE: Final = "resolve"
"""Ids of the buttons."""

EVIDENCE_FINDINGS: Final = 6
EVIDENCE_CHARACTERS: Final = 2_600
EVIDENCE_LINE: Final = 400
PODS_SHOWN: Final = 12
BOARDS_SHOWN: Final = 8
SENTENCE: Final = 500


def root(view: IncidentView) -> Message:
    """Return the root message of the incident's thread as it should read now."""
    incident = view.incident
    blocks = [
        header(headline(incident)),
        section(_what(incident)),
        _evidence(incident),
        *_recommended(view),
        section(state_line(incident, trouble=view.trouble), f"state-{incident.revision}"),
        *_buttons(view),
        context(_context_line(incident)),
    ]
    return Message(_text(view), tuple(blocks))


def headline(incident: Incident) -> str:
    """Return the headline: how bad, what and where; for a closed incident, how it ended."""
    what = f"{words.CAUSES[incident.cause]} on {incident.node}"
    lead = worst(incident.findings)
    match incident.state:
        case State.CLOSED:
            why = incident.ending.why if incident.ending else CloseReason.RECORDED
            return f"\N{WHITE HEAVY CHECK MARK} {_ENDINGS[why]}: {what}"
        case State.APPROVED:
            return f"\N{WRENCH} Approved: {what}"
        case State.REPAIRING:
            return f"\N{WRENCH} In repair: {what}"
        case State.HELD:
            return f"\N{RAISED HAND} Held, needs a person: {what}"
        case _:
            return f"{words.SEVERITY_ICONS[lead.severity]} {words.SEVERITIES[lead.severity]}: {what}"


_ENDINGS: Final = {
    CloseReason.REPAIRED: "Repaired",
    CloseReason.CLEARED: "Cleared by itself",
    CloseReason.NODE_GONE: "Node removed",
    CloseReason.RESOLVED: "Marked as fixed",
    CloseReason.RECORDED: "Closed in Git",
}


def sentence(incident: Incident) -> str:
    """Return what is wrong in one sentence of foreign text, which is not escaped yet."""
    lead = worst(incident.findings)
    device = lead.gpu or lead.device
    known = f"{lead.subsystem} {lead.code}"
    text = lead.summary.strip().rstrip(".") or known
    where = "" if device is None or device in text else f"GPU {device}: " if lead.gpu else f"{device}: "
    named = "" if known.casefold() in text.casefold() else f" ({known})"
    return f"{where}{text[:1].upper() if not where else text[:1]}{text[1:]}{named}."


def _what(incident: Incident) -> str:
    others = len(incident.findings) - 1
    more = f" {words.plural(others, 'more finding')} below." if others else ""
    title = "What was wrong" if incident.state is State.CLOSED else "What is wrong"
    return f"*{title}*\n{escape(sentence(incident), SENTENCE)}{more}"


def _evidence(incident: Incident) -> Block:
    lead = worst(incident.findings)
    rest = [each for each in incident.findings if each is not lead]
    shown = [lead, *rest][:EVIDENCE_FINDINGS]
    lines = [line for each in shown for line in _finding_lines(each)]
    left = len(incident.findings) - len(shown)
    if left:
        lines.append(f"and {words.plural(left, 'more finding')}")
    if incident.companions:
        lines.append("Seen with it, harmless by themselves:")
        lines += [f"  {words.finding_line(each)}" for each in incident.companions[:EVIDENCE_FINDINGS]]
    return preformatted("\n".join(lines), EVIDENCE_CHARACTERS)


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield plain(words.finding_line(finding), EVIDENCE_LINE)
    for line in finding.evidence.splitlines()[:3]:
        yield "  " + plain(line, EVIDENCE_LINE)


def _recommended(view: IncidentView) -> Iterator[Block]:
    recommendation, offer = view.recommendation, view.incident.offer
    if view.incident.state is State.CLOSED:
        return
    title = f"*Recommended: {words.action_words(recommendation.wanted).noun}.*"
    if recommendation.offered not in (None, recommendation.wanted):
        title += f" *Offered instead: {words.action_words(recommendation.offered).noun}.*"
    yield section(f"{title}\n{recommendation.why} {recommendation.but}".rstrip())
    if offer is not None and recommendation.offered:
        yield section(_disturbs(offer.plan))


def _disturbs(plan: Plan) -> str:
    action = words.action_words(plan.action).noun
    lost = "Data in memory is lost; local disks are kept."
    if not plan.keeps_local_data:
        lost = "*Data in memory and on local disks is lost.*"
    pods = _riskiest_first(plan.disturbs)
    lines = [f"*The {action} {words.pods_sentence(plan.disturbs)}.* {lost}"]
    lines += [words.pod_line(pod) for pod in pods[:PODS_SHOWN]]
    if len(pods) > PODS_SHOWN:
        lines.append(f"• and {words.plural(len(pods) - PODS_SHOWN, 'more pod')}")
    return "\n".join(lines)


def _riskiest_first(pods: tuple[PlannedPod, ...]) -> list[PlannedPod]:
    return sorted(pods, key=lambda pod: (-len(pod.risks), -pod.gpus, pod.namespace, pod.name))


def _buttons(view: IncidentView) -> Iterator[Block]:
    incident = view.incident
    value = button_value(incident)
    elements: list[Block] = []
    match incident.state:
        case State.OPEN if incident.offer is not None:
            action = words.action_words(incident.offer.plan.action).noun
            approve = button(f"Approve {action}", APPROVE, value, "primary")
            elements = [approve | {"confirm": _confirm(incident, incident.offer.plan)}]
            elements.append(button("Reject …", REJECT, value))
        case State.LAPSED | State.DECLINED | State.HELD if view.recommendation.offered:
            elements = [button("Offer again", RENEW, value)]
    if incident.state is State.HELD:
        elements.append(button("Mark as fixed", RESOLVE, value))
    if elements:
        yield {"type": "actions", "block_id": f"decide-{incident.revision}", "elements": elements}


def button_value(incident: Incident) -> str:
    """Return the value of a button: the incident, its revision, and the digest of what people were shown."""
    return f"{incident.id} {incident.revision} {incident.offer_digest}"


def _confirm(incident: Incident, plan: Plan) -> Block:
    action = words.action_words(plan.action).noun
    keeps = "Local disks are kept." if plan.keeps_local_data else "LOCAL DATA IS LOST."
    stops = f"The {action} of {incident.node} {words.pods_sentence(plan.disturbs)}."
    text = f"{stops} {keeps}{_named_pods(plan.disturbs)}"
    return confirm(f"{words.order(plan.action, incident.node)}?", text, f"Approve {action}", "Not now")


def _named_pods(pods: tuple[PlannedPod, ...]) -> str:
    if not pods:
        return ""
    named = ", ".join(f"{pod.namespace}/{pod.name}" for pod in _riskiest_first(pods)[:3])
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return f" Pods: {named}{more}."


def _context_line(incident: Incident) -> str:
    parts = [
        f"Incident `{incident.id}`",
        f"opened {when(incident.opened_at)}",
        f"boot `{escape(incident.boot_id or 'unknown', words.NAME)}`",
        f"cluster {escape(incident.cluster, words.NAME)}",
    ]
    for gpu, serial in incident.boards[:BOARDS_SHOWN]:
        parts.append(f"GPU {escape(gpu, words.NAME)} is board {escape(serial, words.NAME)}")
    if incident.attempt > 1:
        parts.append(f"attempt {incident.attempt}")
    return " · ".join(parts)


def _text(view: IncidentView) -> str:
    incident = view.incident
    offer = incident.offer
    ask = ""
    if incident.state is State.OPEN and offer is not None:
        ask = f" {words.order(offer.plan.action, incident.node)}? Please decide by {utc(offer.expires_at)}."
    title = escape(headline(incident), 2 * words.NAME)
    return f"{title}. {escape(sentence(incident), SENTENCE)}{ask}"
