"""Blocks and views at Slack's limits pass, one step beyond they are refused with a pointer to the place."""

from typing import Any

import pytest

from tests.lab.slack.blocks import message_problems, refuse_bad_message
from tests.lab.slack.emulator import Slack
from tests.lab.slack.viewcheck import refuse_bad_view
from tests.lab.slack.wire import SlackError
from tests.lab.tests.slack.conftest import CHANNEL
from tests.lab.tests.slack.plainclient import call

Json = dict[str, Any]


def plain(length: int) -> Json:
    return {"type": "plain_text", "text": "x" * length}


def mrkdwn(length: int) -> Json:
    return {"type": "mrkdwn", "text": "x" * length}


def button(number: int = 0, **more: Any) -> Json:
    return {"type": "button", "action_id": f"a{number}", "text": plain(3), **more}


def actions(element: Json) -> Json:
    return {"type": "actions", "elements": [element]}


def options(count: int) -> list[Json]:
    return [{"text": plain(3), "value": str(number)} for number in range(count)]


def many(count: int) -> list[Json]:
    return [button(number) for number in range(count)]


LIMITS = [
    ("section text", 3000, lambda n: {"type": "section", "text": mrkdwn(n)}, "/blocks/0/text/text"),
    (
        "section field",
        2000,
        lambda n: {"type": "section", "fields": [mrkdwn(n)]},
        "/blocks/0/fields/0/text",
    ),
    ("fields", 10, lambda n: {"type": "section", "fields": [mrkdwn(1)] * n}, "/blocks/0/fields"),
    ("header", 150, lambda n: {"type": "header", "text": plain(n)}, "/blocks/0/text/text"),
    ("actions", 25, lambda n: {"type": "actions", "elements": many(n)}, "/blocks/0/elements"),
    ("context", 10, lambda n: {"type": "context", "elements": [mrkdwn(1)] * n}, "/blocks/0/elements"),
    ("button text", 75, lambda n: actions(button(text=plain(n))), "/blocks/0/elements/0/text/text"),
    ("button value", 2000, lambda n: actions(button(value="v" * n)), "/blocks/0/elements/0/value"),
    (
        "button url",
        3000,
        lambda n: actions(button(url="https://example.com/".ljust(n, "x"))),
        "/blocks/0/elements/0/url",
    ),
    (
        "action_id",
        255,
        lambda n: actions({**button(), "action_id": "a" * n}),
        "/blocks/0/elements/0/action_id",
    ),
    ("block_id", 255, lambda n: {"type": "divider", "block_id": "b" * n}, "/blocks/0/block_id"),
    (
        "options",
        100,
        lambda n: actions({"type": "static_select", "action_id": "s", "options": options(n)}),
        "/blocks/0/elements/0/options",
    ),
    (
        "confirm title",
        100,
        lambda n: actions(button(confirm={"title": plain(n), "text": mrkdwn(300)})),
        "/blocks/0/elements/0/confirm/title/text",
    ),
    (
        "confirm text",
        300,
        lambda n: actions(button(confirm={"title": plain(100), "text": mrkdwn(n)})),
        "/blocks/0/elements/0/confirm/text/text",
    ),
    (
        "confirm button",
        30,
        lambda n: actions(button(confirm={"title": plain(1), "text": mrkdwn(1), "confirm": plain(n)})),
        "/blocks/0/elements/0/confirm/confirm/text",
    ),
    ("markdown", 12_000, lambda n: {"type": "markdown", "text": "x" * n}, "/blocks/0/text"),
]


@pytest.mark.parametrize(
    ("most", "build", "pointer"), [row[1:] for row in LIMITS], ids=[r[0] for r in LIMITS]
)
def test_a_limit_itself_passes_and_one_more_is_refused_at_its_place(
    most: int, build: Any, pointer: str
) -> None:
    assert message_problems([build(most)]) == []
    found = message_problems([build(most + 1)])
    assert len(found) == 1
    assert found[0].endswith(f"[json-pointer:{pointer}]")


ELEMENT = "/blocks/0/elements"
BAD: list[tuple[Any, str, str]] = [
    ("text", "must be an object", "/blocks/0"),
    ({"type": "shout"}, "unsupported type: shout", "/blocks/0/type"),
    ({"type": "section"}, "must define either `text` or `fields`", "/blocks/0"),
    ({"type": "header", "text": mrkdwn(3)}, "must be a valid enum value: plain_text", "/blocks/0/text/type"),
    ({"type": "section", "text": mrkdwn(0)}, "must be more than 0 characters", "/blocks/0/text/text"),
    ({"type": "divider", "colour": "red"}, "invalid additional property: colour", "/blocks/0"),
    (actions(button(style="loud")), "must be a valid enum value: primary, danger", f"{ELEMENT}/0/style"),
    ({"type": "actions", "elements": []}, "no less than 1 items allowed", ELEMENT),
    ({"type": "actions", "elements": many(1) * 2}, "`action_id` already exists in this block", ELEMENT),
]


@pytest.mark.parametrize(("block", "what", "pointer"), BAD, ids=[row[1] for row in BAD])
def test_a_bad_block_is_named(block: Any, what: str, pointer: str) -> None:
    assert f"{what} [json-pointer:{pointer}]" in message_problems([block])


def test_fifty_blocks_pass_and_one_more_does_not() -> None:
    assert message_problems([{"type": "divider"}] * 50) == []
    assert message_problems([{"type": "divider"}] * 51) == [
        "no more than 50 items allowed [json-pointer:/blocks]"
    ]


def test_a_block_id_is_used_once() -> None:
    twice = [{"type": "divider", "block_id": "b"}] * 2
    assert message_problems(twice) == ["`block_id` b already exists [json-pointer:/blocks/1/block_id]"]


def test_all_blocks_together_have_a_limit_too() -> None:
    refuse_bad_message([{"type": "section", "text": mrkdwn(3000)}] * 4)
    with pytest.raises(SlackError, match="msg_blocks_too_long"):
        refuse_bad_message([{"type": "section", "text": mrkdwn(3000)}] * 5)


def test_the_wire_carries_the_pointer_as_slack_does(slack: Slack) -> None:
    answer = call(slack, "chat.postMessage", channel=CHANNEL, blocks=[{"type": "header", "text": plain(151)}])
    told = "must be less than 151 characters [json-pointer:/blocks/0/text/text]"
    assert answer == {
        "ok": False,
        "error": "invalid_blocks",
        "errors": [told],
        "response_metadata": {"messages": [f"[ERROR] {told}"]},
    }
    assert slack.messages(CHANNEL) == []
    text = call(slack, "chat.postMessage", channel=CHANNEL, blocks="not json")
    assert text["error"] == "invalid_blocks_format"


def modal(**more: Any) -> Json:
    return {"type": "modal", "title": plain(24), "blocks": [{"type": "divider"}], **more}


INPUT = {"type": "input", "label": plain(3), "element": {"type": "plain_text_input", "action_id": "t"}}


@pytest.mark.parametrize(
    ("view", "pointer"),
    [
        (modal(title=plain(25)), "/view/title/text"),
        (modal(submit=plain(25)), "/view/submit/text"),
        (modal(private_metadata="x" * 3001), "/view/private_metadata"),
        (modal(callback_id="x" * 256), "/view/callback_id"),
        (modal(blocks=[{"type": "divider"}] * 101), "/view/blocks"),
        (modal(blocks=[INPUT]), "/view"),
        ({"type": "modal", "blocks": []}, "/view"),
        ({"type": "home", "blocks": []}, "/view/type"),
    ],
)
def test_a_bad_modal_is_refused_at_its_place(view: Json, pointer: str) -> None:
    with pytest.raises(SlackError, match="invalid_arguments") as caught:
        refuse_bad_view(view, "modal")
    assert any(error.endswith(f"[json-pointer:{pointer}]") for error in caught.value.extra["errors"])  # type: ignore[attr-defined]


def test_a_good_modal_and_a_good_home_pass() -> None:
    refuse_bad_view(modal(blocks=[INPUT], submit=plain(24), close=plain(24)), "modal")
    refuse_bad_view({"type": "home", "blocks": [{"type": "divider"}] * 100}, "home")
    with pytest.raises(SlackError, match="invalid_arguments"):
        refuse_bad_view({"type": "home", "blocks": [], "title": plain(3)}, "home")
    with pytest.raises(SlackError, match="view_too_large"):
        refuse_bad_view({"type": "home", "blocks": [{"type": "section", "text": mrkdwn(3000)}] * 99}, "home")
