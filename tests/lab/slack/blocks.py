"""Slack's rules for blocks: what a message, a modal or a home may hold, and how Slack words a refusal."""

from collections.abc import Iterator
from typing import Any

from tests.lab.slack.elements import ACCESSORY, IDENTIFIER, IMAGE, INPUT, INTERACTIVE, URL, plain, text
from tests.lab.slack.schema import (
    Check,
    anything,
    boolean,
    both,
    by_type,
    choice,
    either,
    items,
    number,
    problem,
    shape,
    string,
)
from tests.lab.slack.wire import Json, SlackError, refused

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
# Undocumented: bolt-js issue 2509 measured where `msg_blocks_too_long` begins.
ALL_BLOCKS_CHARACTERS = 13_200
ALL_MARKDOWN_CHARACTERS = 12_000


def _block(fields: dict[str, Check], required: tuple[str, ...] = ()) -> Check:
    return shape({"type": anything, "block_id": IDENTIFIER, **fields}, ("type", *required))


_STYLE = shape(dict.fromkeys(("bold", "italic", "strike", "code", "underline", "highlight"), boolean))


def _inline(fields: dict[str, Check], required: tuple[str, ...]) -> Check:
    return shape({"type": anything, "style": _STYLE, **fields}, ("type", *required))


_INLINE = by_type(
    {
        "text": _inline({"text": string(12_000)}, ("text",)),
        "link": _inline({"url": string(3000), "text": string(3000), "unsafe": boolean}, ("url",)),
        "emoji": _inline({"name": string(100), "unicode": anything, "skin_tone": anything}, ("name",)),
        "user": _inline({"user_id": string(20)}, ("user_id",)),
        "channel": _inline({"channel_id": string(20)}, ("channel_id",)),
        "usergroup": _inline({"usergroup_id": string(20)}, ("usergroup_id",)),
        "broadcast": _inline({"range": choice("here", "channel", "everyone")}, ("range",)),
        "date": _inline(
            {
                "timestamp": number(0, 9_999_999_999),
                "format": string(200),
                "url": URL,
                "fallback": string(200),
            },
            ("timestamp", "format"),
        ),
    }
)
_INLINES = items(_INLINE, 1000, 0)
_RICH_SECTION = shape({"type": anything, "elements": _INLINES}, ("type", "elements"))
_RICH_FRAMED = shape(
    {"type": anything, "elements": _INLINES, "border": number(0, 1), "language": string(50)},
    ("type", "elements"),
)
_RICH_LIST = shape(
    {
        "type": anything,
        "style": choice("bullet", "ordered"),
        "indent": number(0, 8),
        "offset": number(0, 9999),
        "border": number(0, 1),
        "elements": items(by_type({"rich_text_section": _RICH_SECTION}), 1000),
    },
    ("type", "style", "elements"),
)
_RICH = by_type(
    {
        "rich_text_section": _RICH_SECTION,
        "rich_text_preformatted": _RICH_FRAMED,
        "rich_text_quote": _RICH_FRAMED,
        "rich_text_list": _RICH_LIST,
    }
)

_SECTION = both(
    _block({"text": text(3000), "fields": items(text(2000), 10), "accessory": ACCESSORY, "expand": boolean}),
    either("text", "fields"),
)
_CONTEXT_ELEMENT = by_type({"image": IMAGE, "plain_text": text(3000), "mrkdwn": text(3000)})
_INPUT = _block(
    {
        "label": plain(2000),
        "element": INPUT,
        "hint": plain(2000),
        "optional": boolean,
        "dispatch_action": boolean,
    },
    ("label", "element"),
)
_EVERYWHERE: dict[str, Check] = {
    "section": _SECTION,
    "header": _block({"text": plain(150)}, ("text",)),
    "divider": _block({}),
    "context": _block({"elements": items(_CONTEXT_ELEMENT, 10)}, ("elements",)),
    "actions": _block({"elements": items(INTERACTIVE, 25)}, ("elements",)),
    "image": _block(
        {"image_url": URL, "alt_text": string(2000), "title": plain(2000), "slack_file": anything},
        ("alt_text",),
    ),
    "rich_text": _block({"elements": items(_RICH, 100)}, ("elements",)),
    "input": _INPUT,
}
_IN_MESSAGE = by_type({**_EVERYWHERE, "markdown": _block({"text": string(12_000)}, ("text",))})
_IN_VIEW = by_type(_EVERYWHERE)


def message_problems(blocks: Any) -> list[str]:
    """What Slack would find wrong with a message's blocks; an empty list is fine."""
    found = list(items(_IN_MESSAGE, MESSAGE_BLOCKS, 0)(blocks, "/blocks"))
    return found or list(_repeated(blocks, "/blocks"))


def view_block_problems(blocks: Any) -> list[str]:
    """What Slack would find wrong with the blocks of a modal or a home."""
    found = list(items(_IN_VIEW, VIEW_BLOCKS, 0)(blocks, "/view/blocks"))
    return found or list(_repeated(blocks, "/view/blocks"))


def refuse_bad_message(blocks: Any) -> None:
    """Raise what Slack would answer to these blocks of a message."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    found = message_problems(blocks)
    if found:
        raise refused("invalid_blocks", found)
    markdown = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    if sum(_lengths(blocks)) > ALL_BLOCKS_CHARACTERS or markdown > ALL_MARKDOWN_CHARACTERS:
        raise SlackError("msg_blocks_too_long")


def elements(blocks: list[Json]) -> Iterator[tuple[Json, Json]]:
    """Every (block, interactive element) in order of appearance."""
    for block in blocks:
        inner = [*block.get("elements", []), block.get("accessory"), block.get("element")]
        for element in inner:
            if isinstance(element, dict) and element.get("type") in INTERACTIVE_TYPES:
                yield block, element


INTERACTIVE_TYPES = frozenset(
    {
        "button",
        "overflow",
        "static_select",
        "multi_static_select",
        "users_select",
        "channels_select",
        "conversations_select",
        "radio_buttons",
        "checkboxes",
        "datepicker",
        "timepicker",
        "datetimepicker",
        "plain_text_input",
    }
)


def _repeated(blocks: list[Json], pointer: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        name = block.get("block_id")
        if name in seen:
            yield problem(f"`block_id` {name} already exists", f"{pointer}/{index}/block_id")
        if name:
            seen.add(name)
        actions = [item.get("action_id") for item in block.get("elements", []) if isinstance(item, dict)]
        named = [action for action in actions if action]
        if len(named) != len(set(named)):
            yield problem("`action_id` already exists in this block", f"{pointer}/{index}/elements")


def _lengths(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _lengths(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name == "text" and isinstance(inner, str):
                yield len(inner)
            else:
                yield from _lengths(inner)
