"""What one person alone is told: why a click decided nothing, and the answers to `/cluster …`. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from bot.command import UnknownCommand
from bot.incidents.approve import Denial, Denied
from bot.incidents.incident import RANK, Incident, worst
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


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The cluster in numbers. `nodes` and `ready` are None when Kubernetes could not be read."""

    cluster: str
    nodes: int | None
    ready: int | None
    reporting: int
    incidents: tuple[Incident, ...]
    trouble: tuple[str, ...] = ()


_DENIALS: Final[Mapping[Denial, str]] = {
    Denial.STARTING: "I have just been started and am still reading what is open. Try again in a moment.",
    Denial.UNKNOWN_INCIDENT: "This incident is not open any more.",
    Denial.ACCOUNT_UNREADABLE: "Slack could not say who you are just now, so your access could not be "
    "checked. Try again in a moment.",
    Denial.NOT_A_PERSON: "Only people decide about repairs.",
    Denial.GUEST: "Guests of this workspace cannot decide about repairs. Ask a member who is an approver.",
    Denial.NO_EMAIL: "Your Slack profile shows no e-mail address, so you cannot be matched with an approver.",
    Denial.NO_ACCESS_LIST: "The list of approvers could not be read from Git, so your access could not be "
    "checked. Try again in a moment.",
    Denial.NOT_AN_APPROVER: "You are not an approver of this cluster.",
    Denial.CLOSED: "This incident is closed already.",
    Denial.SUPERSEDED: "This button belongs to an older state of the incident, which has changed since. "
    "Look at the thread's first message and decide there.",
    Denial.NOTHING_OFFERED: "There is nothing to approve for this incident.",
    Denial.WORLD_UNREADABLE: "Kubernetes could not be read just now, so it could not be checked whether this "
    "is still what you were shown. Try again in a moment.",
    Denial.FINDINGS_CHANGED: "The node's findings are not the ones you were shown any more, or its newest "
    "report is too old to tell.",
    Denial.PLAN_CHANGED: "Other pods run on the node now than you were shown. The first message is being "
    "brought up to date; look at it again and decide there.",
}


def denied(why: Denied) -> Message:
    """Return what a person is told whose click decided nothing."""
    text = " ".join(part for part in (_reason(why), "Nothing was decided.") if part)
    return Message(text, (section(text),))


def _reason(why: Denied) -> str:
    detail = escape(why.detail, REASON) if why.detail else ""
    match why.why:
        case Denial.ALREADY_DECIDED:
            at = f" at {when(why.at)}" if why.at else ""
            return f"{escape(why.by, words.NAME)} has decided this already{at}."
        case Denial.LAPSED:
            at = f" at {when(why.at)}" if why.at else ""
            return f"The offer lapsed{at}. Have it offered again first."
        case Denial.NODE_CHANGED if detail:
            return (
                f"The node has rebooted since (boot `{detail}`); what you were shown is about an older boot."
            )
        case Denial.NODE_CHANGED:
            return "The node is not the one that you were shown: it has been removed or registered anew."
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
    """Return what a person is told when something broke on our side."""
    text = "Something went wrong on our side; nothing was decided. It is in the bot's log. Try again."
    return Message(text, (section(text),))


def rejection_modal(incident: str, value: str) -> Block:
    """Return the modal that asks why the repair of `incident` is rejected; `value` comes back with it."""
    return {
        "type": "modal",
        "callback_id": REJECTION,
        "private_metadata": value,
        "title": {"type": "plain_text", "text": plain("Reject the repair", MODAL_TITLE)},
        "submit": {"type": "plain_text", "text": "Reject"},
        "close": {"type": "plain_text", "text": "Keep it open"},
        "blocks": [
            section(f"Incident `{escape(incident, words.NAME)}` stays open for people; no repair is run."),
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
    nodes, known = "Kubernetes could not be read just now.", cluster_status.nodes
    if known is not None:
        ready, reporting = cluster_status.ready, cluster_status.reporting
        nodes = f"{words.plural(known, 'node')}, {ready} ready, {reporting} reporting."
    count = len(cluster_status.incidents)
    summary = f"*{escape(cluster_status.cluster, words.NAME)}*: {nodes} {_count(count)}"
    trouble = [f"\N{WARNING SIGN} {escape(each, REASON)}" for each in cluster_status.trouble]
    return _lines([summary, *trouble, *_rows(cluster_status.incidents)])


def incidents(open_incidents: tuple[Incident, ...]) -> Message:
    """Return the answer to `/cluster incidents`."""
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
    """Return the answer for an id that is not open."""
    ids = [each.id for each in open_incidents][:LISTED]
    known = f" Open now: {', '.join(f'`{each}`' for each in ids)}." if ids else " None is open now."
    return _lines([f"No open incident is called `{escape(named, words.NAME)}`.{known}"])


HELP: Final = (
    "*What `/cluster` answers* (only you see it)",
    "`/cluster status` the cluster in one glance",
    "`/cluster incidents` every open incident",
    "`/cluster incident ID` one incident in full",
    "`/cluster help` this list",
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
        first = f"`{word}` is not understood. Did you mean `/cluster {wrong.meant}`?"
    else:
        first = f"`{word}` is not understood."
    return _lines([first, *HELP])


def _count(count: int) -> str:
    return f"{words.plural(count, 'open incident')}." if count else "No open incident."


def _rows(shown: tuple[Incident, ...]) -> list[str]:
    ordered = sorted(shown, key=lambda each: (-RANK[worst(each.findings).severity], each.opened_at, each.id))
    rows = [_row(each) for each in ordered[:LISTED]]
    left = len(ordered) - LISTED
    return [*rows, f"and {left} more"] if left > 0 else rows


def _row(shown: Incident) -> str:
    mark = words.MARKS[worst(shown.findings).severity]
    what = escape(sentence(shown), 200)
    return f"{mark} `{shown.id}` {words.STATES[shown.state]}, since {when(shown.opened_at)}: {what}"


def _lines(lines: list[str]) -> Message:
    """Return lines as one message, cut between lines where Slack's limit is."""
    blocks: list[Block] = []
    kept: list[str] = []
    for line in lines:
        if kept and sum(map(len, kept)) + len(kept) + len(line) > 2_900:
            blocks.append(section("\n".join(kept)))
            kept = []
        kept.append(line)
    blocks.append(section("\n".join(kept)))
    return Message(_spoken(lines), tuple(blocks))


def _spoken(lines: list[str]) -> str:
    """Return whole lines for screen readers, as many as fit: a cut could split a date of Slack's."""
    said = lines[0]
    for line in lines[1:]:
        if len(said) + len(line) > 1_000:
            break
        said += f" {line}"
    return said.replace("*", "").replace("`", "")
