"""Invariant: whatever nodes and people write, every message fits, and names, links and mentions nobody."""

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.command import WORDS, UnknownCommand
from bot.incidents.approve import Denial, Denied
from bot.incidents.incident import Closure, Incident, State
from bot.incidents.recommend import recommend
from bot.incidents.view import IncidentView
from bot.messages import answer
from bot.messages.blocks import Message, validate
from bot.messages.reply import replies
from bot.messages.root import root
from checks.finding import Action, Severity
from reconciler.incidents.progress import BlockedPod, DrainFact, Phase
from reconciler.incidents.records import Cause, CloseReason
from reconciler.repair.providers.redfish import KIND
from tests.bot.samples import HOSTILE, NOW, STEPS, decision, finding, incident, offer, outcome, pod, progress

TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=4_000))
NAMES = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=300))


@st.composite
def findings(draw: st.DrawFn) -> Any:
    return finding(
        code=draw(NAMES), subsystem=draw(NAMES), check=draw(NAMES), gpu=draw(st.one_of(st.none(), NAMES)),
        device=draw(st.one_of(st.none(), NAMES)), summary=draw(TEXTS), evidence=draw(TEXTS),
        severity=draw(st.sampled_from(list(Severity))), action=draw(st.sampled_from(list(Action))),
        count=draw(st.integers(1, 10**12)), first_seen=draw(st.floats()),
    )  # fmt: skip


@st.composite
def incidents(draw: st.DrawFn) -> Incident:
    pods = draw(st.lists(st.builds(pod, NAMES, st.sampled_from(["bare", "emptyDir", "pdb:" + "x" * 300]),
                                   namespace=NAMES), max_size=40))  # fmt: skip
    text = draw(TEXTS)
    blocked = draw(
        st.lists(
            st.builds(
                BlockedPod, namespace=NAMES, name=NAMES, budgets=st.lists(NAMES, max_size=3), reason=NAMES
            ),
            max_size=9,
        )
    )
    person = decision().person.model_copy(update={"name": draw(NAMES), "slack": draw(NAMES)})
    status = progress(
        draw(st.sampled_from([each.name for each in STEPS])),
        text,
        DrainFact(pods_left=len(blocked), blocked=tuple(blocked)),
    )
    made = decision(person=person, approves=draw(st.booleans()), reason=text)
    phase = draw(st.sampled_from(list(Phase)))
    return incident(
        cluster=draw(NAMES), boot_id=draw(NAMES), state=draw(st.sampled_from(list(State))),
        cause=draw(st.sampled_from(list(Cause))), attempt=draw(st.integers(1, 99)),
        findings=tuple(draw(st.lists(findings(), min_size=1, max_size=12))),
        companions=tuple(draw(st.lists(findings(), max_size=12))),
        offer=draw(st.one_of(st.none(), st.just(offer(*pods)))),
        decision=draw(st.sampled_from([None, made])),
        progress=draw(st.one_of(st.none(), st.just(status))),
        outcomes=draw(st.sampled_from([(), (outcome(phase, reason=text, held_by=text, new_boot_id=text),)])),
        ending=draw(st.one_of(st.none(), st.builds(Closure, st.sampled_from(list(CloseReason)), st.just(NOW), NAMES))),
        clear_since=draw(st.sampled_from([None, NOW])), worsened=draw(st.booleans()),
    )  # fmt: skip


def interpreted(message: Message) -> Iterator[str]:
    """Every text of the message in which Slack looks for mentions and links."""
    yield message.text
    for block in message.blocks:
        if block["type"] == "section":
            yield block["text"]["text"]
        if block["type"] == "context":
            yield from (each["text"] for each in block["elements"])


def harmless(text: str, mentioned: tuple[str, ...] = ()) -> bool:
    pieces = text.split("<")[1:]
    return all(
        piece.startswith("!date^") or any(piece.startswith(f"@{who}>") for who in mentioned)
        for piece in pieces
    )


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(incidents(), TEXTS)
def test_no_incident_makes_a_message_that_slack_refuses_or_that_speaks_for_a_log_line(
    about: Incident, trouble: str
) -> None:
    first = root(IncidentView(about, recommend(about.cause, about.findings, KIND), trouble))
    assert validate(first) == []
    assert all(harmless(text) for text in interpreted(first))
    for each in replies(about):
        assert validate(each.message) == []
        assert all(harmless(text, ("U0APPROVER",)) for text in interpreted(each.message))
    for message in (answer.incident(about), answer.incidents((about,) * 30)):
        assert validate(message) == []
        assert all(harmless(text) for text in interpreted(message))


@given(st.sampled_from(list(Denial)), TEXTS, TEXTS)
def test_no_denial_makes_a_message_that_slack_refuses(why: Denial, by: str, detail: str) -> None:
    message = answer.denied(Denied(why, by, NOW, detail))
    assert validate(message) == []
    assert all(harmless(text) for text in interpreted(message))


@given(NAMES, st.sampled_from(["", *WORDS]))
def test_no_mistake_makes_a_message_that_slack_refuses(word: str, meant: str) -> None:
    message = answer.mistake(UnknownCommand(word, meant))
    assert validate(message) == []
    assert all(harmless(text) for text in interpreted(message))
