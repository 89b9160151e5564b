"""Messages that only one person sees: why a click decided nothing, and the answers to `/cluster …`. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from bot.command import UnknownCommand
from bot.incidents.approve import Denial, Denied
from bot.incidents.incident import Incident, worst
from bot.incidents.status import ClusterStatus
from bot.messages import words
from bot.messages.blocks import MODAL_TITLE, Block, Message, escape, plain, preformatted, section, when
from bot.messages.root import EVIDENCE_CHARACTERS, sentence
from bot.messages.state_line import REASON, state_line

LISTED: Final = 20
"""Incidents in one answer."""

REJECTION: Final = "rejection"
"""Callback id of the modal that asks for the reason of a rejection."""

REASON_BLOCK: Final = "reason"
REASON_LIMIT: Final = 500
"""Characters that the modal accepts."""


_DENIALS: Final[Mapping[Denial, str]] = {
    Denial.STARTING: "The bot has just started and is still reading the open incidents. Try again in a moment.",
    Denial.UNKNOWN_INCIDENT: "This incident is no longer open.",
    Denial.ACCOUNT_UNREADABLE: "Slack did not say who you are, so your access could not be checked. "
    "Try again in a moment.",
    Denial.NOT_A_PERSON: "Only people can decide about repairs.",
    Denial.GUEST: "Guests of this workspace cannot decide about repairs. Ask a member who is an approver.",
    Denial.NO_EMAIL: "Your Slack profile shows no e-mail address, so you cannot be matched with an approver.",
    Denial.NO_ACCESS_LIST: "The list of approvers could not be read from Git, so your access could not be "
    "checked. Try again in a moment.",
    Denial.NOT_AN_APPROVER: "You are not an approver of this cluster.",
    Denial.CLOSED: "This incident is already closed.",
    Denial.SUPERSEDED: "This button belongs to an older state of the incident. Look at the first message of the "
    "thread and decide there.",
    Denial.NOTHING_OFFERED: "There is nothing to approve for this incident.",
    Denial.NODE_UNREADABLE: "Kubernetes could not be read, so the bot could not check whether the node is still as "
    "you were shown. Try again in a moment.",
    Denial.FINDINGS_CHANGED: "The node's findings are no longer the ones you were shown, or its newest report is too "
    "old to tell. Look at the first message of the thread again in a moment.",
    Denial.PLAN_CHANGED: "Other pods run on the node now than you were shown. The first message of the thread is being "
    "updated; look at it again and decide there.",
}


def denied(why: Denied) -> Message:
    """Return the answer to a person whose click decided nothing."""
    text = " ".join(part for part in (_reason(why), "Your click changed nothing.") if part)
    return Message(text, (section(text),))


def _reason(why: Denied) -> str:
    detail = escape(why.detail, REASON) if why.detail else ""
    match why.why:
        case Denial.ALREADY_DECIDED:
            at = f" at {when(why.at)}" if why.at else ""
            return f"{escape(why.by, words.NAME)} has already decided this{at}."
        case Denial.LAPSED:
            at = f" at {when(why.at)}" if why.at else ""
            return f"The offer lapsed{at}. Press *Offer again* in the first message of the thread first."
        case Denial.NODE_CHANGED if detail:
            return (
                f"The node has rebooted since (boot `{detail}`), and you were shown an older boot. Look at the first "
                "message of the thread again in a moment."
            )
        case Denial.NODE_CHANGED:
            return "The node is not the one that you were shown: it was removed or has registered again."
        case Denial.NOT_AN_APPROVER:
            who = f" ({detail})" if detail else ""
            return (
                f"You{who} are not an approver of this cluster. Approvers are the people in `Access` on the "
                "configuration branch; a pull request adds you."
            )
        case Denial.PLAN_CHANGED if detail:
            return f"{_DENIALS[Denial.PLAN_CHANGED]} New on the node: {detail}."
        case _:
            return _DENIALS[why.why]


def failed() -> Message:
    """Return the answer to a person whose click failed because of a fault of the bot."""
    text = "Something went wrong in the bot, and nothing was decided. Its log says more. Try again."
    return Message(text, (section(text),))


def rejection_modal(incident: str, value: str) -> Block:
    """Return the modal that asks why a repair is rejected; Slack sends `value` back with the reason."""
    return {
        "type": "modal",
        "callback_id": REJECTION,
        "private_metadata": value,
        "title": {"type": "plain_text", "text": plain("Reject the repair", MODAL_TITLE)},
        "submit": {"type": "plain_text", "text": "Reject"},
        "close": {"type": "plain_text", "text": "Keep it open"},
        "blocks": [
            section(f"Incident `{escape(incident, words.NAME)}` stays open, and no repair runs."),
            {
                "type": "input",
                "block_id": REASON_BLOCK,
                "label": {"type": "plain_text", "text": "Why? Everybody in the thread sees it."},
                "element": {
                    "type": "plain_text_input",
                    "action_id": REASON_BLOCK,
                    "multiline": True,
                    "min_length": 1,
                    "max_length": REASON_LIMIT,
                },
            },
        ],
    }


def status(cluster_status: ClusterStatus) -> Message:
    """Return the answer to `/cluster status`."""
    nodes, known = "Kubernetes could not be read.", cluster_status.nodes
    if known is not None:
        ready, reporting = cluster_status.ready, cluster_status.reporting
        nodes = f"{words.plural(known, 'node')}, {ready} ready, {reporting} reporting."
    count = len(cluster_status.incidents)
    summary = f"*{escape(cluster_status.cluster, words.NAME)}*: {nodes} {_count(count)}"
    trouble = [f"\N{WARNING SIGN} {escape(each, REASON)}" for each in cluster_status.trouble]
    return _lines([summary, *trouble, *_rows(cluster_status.incidents)])


def incidents(open_incidents: tuple[Incident, ...]) -> Message:
    """Return the answer to `/cluster incidents`; the worst comes first."""
    return _lines([_count(len(open_incidents)), *_rows(open_incidents)])


def incident(shown: Incident) -> Message:
    """Return the answer to `/cluster incident ID`."""
    title = f"*{shown.id}*: {words.CAUSES[shown.cause]} on `{shown.node}`, opened {when(shown.opened_at)}"
    findings = "\n".join(words.finding_line(each) for each in shown.findings)
    what = escape(sentence(shown), REASON)
    text = f"{shown.id}: {what}"
    blocks = (
        section(f"{title}\n{what}"),
        preformatted(findings, EVIDENCE_CHARACTERS),
        section(state_line(shown)),
    )
    return Message(text, blocks)


def no_such_incident(named: str, open_incidents: Iterable[Incident]) -> Message:
    """Return the answer for an id that is not an open incident."""
    ids = [each.id for each in open_incidents][:LISTED]
    known = f" Open now: {', '.join(f'`{each}`' for each in ids)}." if ids else " None is open now."
    return _lines([f"No open incident is called `{escape(named, words.NAME)}`.{known}"])


HELP: Final = (
    "*Commands of `/cluster`* (only you see the answer)",
    "`/cluster status`: nodes, reports and open incidents",
    "`/cluster incidents`: every open incident, worst first",
    "`/cluster incident ID`: one incident in full",
    "`/cluster help`: this list",
)


def help_text() -> Message:
    """Return the answer to `/cluster help`."""
    return _lines(list(HELP))


def mistake(wrong: UnknownCommand) -> Message:
    """Return the answer to something that is not a command."""
    word = escape(wrong.word, words.NAME)
    if wrong.missing:
        first = f"`{word}` is not {wrong.missing}; `/cluster incidents` lists them."
    elif wrong.meant:
        first = f"`{word}` is not a command. Did you mean `/cluster {wrong.meant}`?"
    else:
        first = f"`{word}` is not a command."
    return _lines([first, *HELP])


def _count(count: int) -> str:
    return f"{words.plural(count, 'open incident')}." if count else "No open incident."


def _rows(shown: tuple[Incident, ...]) -> list[str]:
    rows = [_row(each) for each in shown[:LISTED]]
    left = len(shown) - LISTED
    return [*rows, f"and {left} more"] if left > 0 else rows


def _row(shown: Incident) -> str:
    icon = words.SEVERITY_ICONS[worst(shown.findings).severity]
    what = escape(sentence(shown), 200)
    return f"{icon} `{shown.id}` {words.STATES[shown.state]}, since {when(shown.opened_at)}: {what}"


def _lines(lines: list[str]) -> Message:
    """Return lines as one message, cut between lines to keep Slack's limit."""
    blocks: list[Block] = []
    kept: list[str] = []
    for line in lines:
        if kept and sum(map(len, kept)) + len(kept) + len(line) > 2_900:
            blocks.append(section("\n".join(kept)))
            kept = []
        kept.append(line)
    blocks.append(section("\n".join(kept)))
    return Message(_fallback_text(lines), tuple(blocks))


def _fallback_text(lines: list[str]) -> str:
    """Return whole lines for screen readers, as many as fit: a cut could split a date of Slack's."""
    said = lines[0]
    for line in lines[1:]:
        if len(said) + len(line) > 1_000:
            break
        said += f" {line}"
    return said.replace("*", "").replace("`", "")
