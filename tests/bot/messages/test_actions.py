"""Every action in every message that names one: good English whatever the action is called.

One snapshot per kind of message, with a paragraph for each action, also for those that are not built yet.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.incidents.incident import Closure, Decision, Incident, Offer, State
from bot.incidents.recommend import OFFER_RULES, Recommendation, recommend
from bot.incidents.view import IncidentView
from bot.messages.blocks import Block, Message, validate
from bot.messages.reply import replies
from bot.messages.root import root
from checks.finding import Action
from reconciler.incidents.plan import Plan
from reconciler.incidents.progress import JournalEntry, Phase, StepState
from reconciler.incidents.records import CloseReason, RepairOutcome
from reconciler.repair.actions.registry import ACTIONS
from reconciler.repair.providers.redfish import KIND
from reconciler.repair.resource import RepairStatus
from tests.bot.samples import NOW, decision, finding, incident, outcome, pod

Snapshot = Callable[[object], None]
DESTRUCTIVE = [each for each in Action if each not in (Action.NONE, Action.ASK)]


def steps(action: Action) -> tuple[str, ...]:
    """The steps of the action, or those that an action of another version may have."""
    known = ACTIONS.get(action)
    return (
        tuple(each.name for each in known.plans[known.version]) if known else ("cordon", "drain", "swap-disk")
    )


def offer_of(action: Action, *, pods: int = 1) -> Offer | None:
    if action not in DESTRUCTIVE:
        return None
    disturbed = tuple(pod(f"worker-{number}") for number in range(pods))
    keeps = action in (Action.RESET_GPU, Action.REBOOT, Action.REMOVE)
    plan = Plan(
        action=action, provider="redfish", steps=steps(action), disturbs=disturbed, keeps_local_data=keeps
    )
    return Offer(plan=plan, offered_at=NOW, expires_at=NOW + timedelta(hours=1))


def about(action: Action, state: State, **fields: object) -> Incident:
    base = incident(
        findings=(finding(code="0", action=action, summary="a fault that calls for this action"),),
        offer=offer_of(action),
        state=state,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def journal(action: Action, *, done: int) -> tuple[JournalEntry, ...]:
    at = NOW + timedelta(minutes=4)
    destructive = (
        {each.name for each in ACTIONS[action].plans[1] if each.destructive} if action in ACTIONS else set()
    )
    return tuple(
        JournalEntry(
            name=name, state=StepState.DONE if index < done else StepState.INTENT, started_at=at,
            finished_at=at if index < done else None, destructive=name in destructive or name == "swap-disk",
        )
        for index, name in enumerate(steps(action)[: done + 1])
    )  # fmt: skip


def ended(action: Action, phase: Phase, **fields: object) -> RepairOutcome:
    base = outcome(phase, action=action, reason="the machine does not answer", new_boot_id="", steps=())
    return base.model_copy(update=fields)


def running(action: Action) -> RepairStatus:
    name = steps(action)[1]
    return RepairStatus(
        phase=Phase.RUNNING, step=name, message="waits", steps=journal(action, done=1), started_at=NOW
    )


MADE: Decision = decision()
HELD = {"held_by": "operations@example.com"}

KINDS: dict[str, Callable[[Action], Incident]] = {
    "open": lambda action: about(action, State.OPEN),
    "lapsed": lambda action: about(action, State.LAPSED),
    "deciding": lambda action: about(action, State.DECIDING, decision=MADE),
    "declined": lambda action: about(
        action, State.DECLINED, decision=decision(approves=False, reason="a job needs two more hours")
    ),
    "approved": lambda action: about(action, State.APPROVED, decision=MADE),
    "repairing": lambda action: about(action, State.REPAIRING, decision=MADE, progress=running(action)),
    "held": lambda action: about(
        action, State.HELD, decision=MADE, outcomes=(ended(action, Phase.HELD, kept=("cordon",), **HELD),)
    ),
    "held-uncordoned": lambda action: about(
        action, State.HELD, decision=MADE, outcomes=(ended(action, Phase.HELD, **HELD),)
    ),
    "failed": lambda action: about(
        action, State.OPEN, decision=MADE, outcomes=(ended(action, Phase.FAILED, kept=("cordon",)),)
    ),
    "refused": lambda action: about(
        action, State.OPEN, decision=MADE, outcomes=(ended(action, Phase.LAPSED, started_at=None),)
    ),
    "closed": lambda action: about(
        action, State.CLOSED, decision=MADE, ending=Closure(CloseReason.REPAIRED, NOW + timedelta(minutes=15)),
        outcomes=(ended(action, Phase.SUCCEEDED, reason="the node is back in service"),),
    ),
}  # fmt: skip


def seen(action: Action, state: Incident) -> Message:
    """The root message if the action could be carried out."""
    offered = action if action in DESTRUCTIVE else None
    return root(IncidentView(state, Recommendation(action, offered, OFFER_RULES[action].why)))


def words(message: Message) -> str:
    """All that a message says, one line per text; a button stands with the dialog that it opens."""
    return "\n".join([f"[{message.text}]", *(line for block in message.blocks for line in _lines(block))])


def _lines(block: Block) -> Iterator[str]:
    match block["type"]:
        case "header" | "section":
            yield block["text"]["text"]
        case "rich_text":
            yield block["elements"][0]["elements"][0]["text"]
        case "context":
            yield block["elements"][0]["text"]
        case "actions":
            for each in block["elements"]:
                yield f"({each['text']['text']})"
                asked = each.get("confirm", {})
                yield from (f"    {name}: {asked[name]['text']}" for name in asked)


def is_english(text: str) -> bool:
    """Whether no article, word or full stop stands twice."""
    plain = re.sub(r"[*`]", "", text)
    return not re.search(r"\b(a|an|the) (a|an|the)\b|\b([a-z]+) \3\b|\.\.|\s\.", plain, re.IGNORECASE)


def paragraphs(texts: dict[Action, str]) -> str:
    assert [action for action, text in texts.items() if not is_english(text)] == []
    return "\n\n".join(f"## {action.value}\n{text}" for action, text in texts.items())


@pytest.mark.parametrize("kind", KINDS)
def test_root_by_action(kind: str, snapshot: Snapshot) -> None:
    found = {action: seen(action, KINDS[kind](action)) for action in Action}
    assert [action for action, message in found.items() if validate(message)] == []
    snapshot(paragraphs({action: words(message) for action, message in found.items()}))


@pytest.mark.parametrize("kind", KINDS)
def test_replies_by_action(kind: str, snapshot: Snapshot) -> None:
    found = {action: replies(KINDS[kind](action)) for action in DESTRUCTIVE}
    snapshot(
        paragraphs({
            action: "\n".join(f"{each.key}: {words(each.message)}" for each in all_of_it)
            for action, all_of_it in found.items()
        })
    )  # fmt: skip


def test_offers_by_action(snapshot: Snapshot) -> None:
    """What this version really offers for each action, with the provider that it has."""
    texts = {}
    for action in Action:
        state = about(action, State.OPEN, offer=None)
        found = recommend(state.cause, state.findings, KIND)
        shown = replace(state, offer=offer_of(found.offered) if found.offered else None)
        texts[action] = words(root(IncidentView(shown, found)))
    snapshot(paragraphs(texts))


def test_an_offer_that_stops_no_pod_says_so(snapshot: Snapshot) -> None:
    empty = {action: about(action, State.OPEN, offer=offer_of(action, pods=0)) for action in DESTRUCTIVE}
    texts = {action: words(seen(action, state)) for action, state in empty.items()}
    assert [action for action, text in texts.items() if "stops no pods" not in text] == []
    snapshot(paragraphs(texts))
