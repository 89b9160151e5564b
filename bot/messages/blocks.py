"""Slack blocks and their limits: foreign text is escaped, and everything is cut to what Slack accepts. Pure.

`validate` knows every limit and is what tests hold against builders; builders keep to the limits themselves,
cutting the final string, so a long log line never costs a person the message.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Block = dict[str, Any]

TOTAL_LIMIT: Final = 12_000
"""Characters of all text in one message; Slack's own limit is undocumented and near 13,200 (bolt-js#2509)."""

TEXT_LIMIT: Final = 4_000
"""Characters of a message's plain text that `chat.update` accepts."""

MESSAGE_BLOCKS: Final = 50
HEADER: Final = 150
SECTION: Final = 3_000
BUTTON: Final = 75
VALUE: Final = 2_000
ID: Final = 255
CONFIRM_TITLE: Final = 100
CONFIRM_TEXT: Final = 300
CONFIRM_BUTTON: Final = 30
MODAL_TITLE: Final = 24
PRIVATE: Final = 3_000

MORE: Final = " …"

_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class Message:
    """What one message says: `text` for notifications and screen readers, `blocks` for the screen."""

    text: str
    blocks: tuple[Block, ...] = ()


def plain(text: str, limit: int) -> str:
    """Return foreign text for a field that Slack does not interpret: controls visible, cut to `limit`."""
    return _cut((_visible(each) for each in text), limit)


def escape(text: str, limit: int) -> str:
    """Return foreign text for a field that Slack interprets: no mention, no link, at most `limit` characters."""
    return _cut((_ESCAPES.get(each) or _soft(_visible(each)) for each in text), limit)


def when(at: datetime) -> str:
    """Return a moment that Slack shows in the reader's own time zone, and everybody else in UTC."""
    return f"<!date^{int(at.timestamp())}^{{date_num}} {{time_secs}}|{utc(at)}>"


def utc(at: datetime) -> str:
    """Return a moment in UTC, for text that Slack does not interpret."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def header(text: str) -> Block:
    """Return a headline."""
    return {"type": "header", "text": {"type": "plain_text", "text": plain(text, HEADER), "emoji": True}}


def section(text: str, block_id: str = "") -> Block:
    """Return a paragraph of our own words; foreign parts in it have been escaped and cut already."""
    return {
        "type": "section",
        **({"block_id": block_id} if block_id else {}),
        "text": {"type": "mrkdwn", "text": text},
    }


def context(text: str) -> Block:
    """Return small print."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}


def preformatted(text: str, limit: int = SECTION) -> Block:
    """Return foreign lines as they are, where nothing in them is interpreted."""
    element = {"type": "text", "text": plain(text, limit)}
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_preformatted", "elements": [element]}],
    }


def button(text: str, action_id: str, value: str, style: str = "") -> Block:
    """Return a button; `style` is `primary`, `danger` or empty."""
    return {
        "type": "button",
        "action_id": action_id,
        "text": {"type": "plain_text", "text": plain(text, BUTTON), "emoji": True},
        "value": value,
        **({"style": style} if style else {}),
    }


def confirm(title: str, text: str, yes: str, no: str) -> Block:
    """Return the dialog that asks before a button counts."""
    return {
        "title": {"type": "plain_text", "text": plain(title, CONFIRM_TITLE)},
        "text": {"type": "plain_text", "text": plain(text, CONFIRM_TEXT)},
        "confirm": {"type": "plain_text", "text": plain(yes, CONFIRM_BUTTON)},
        "deny": {"type": "plain_text", "text": plain(no, CONFIRM_BUTTON)},
    }


def validate(message: Message) -> list[str]:
    """Return every limit that the message breaks, in words; nothing when Slack accepts it."""
    broken = [] if 0 < len(message.text) <= TEXT_LIMIT else [f"text: {len(message.text)} characters"]
    if len(message.blocks) > MESSAGE_BLOCKS:
        broken.append(f"blocks: {len(message.blocks)} of at most {MESSAGE_BLOCKS}")
    total = sum(len(each) for block in message.blocks for each in _strings(block))
    if total > TOTAL_LIMIT:
        broken.append(f"blocks: {total} characters of at most {TOTAL_LIMIT}")
    for index, block in enumerate(message.blocks):
        broken += [f"/blocks/{index}{each}" for each in _broken(block)]
    return broken


_LIMITS: Final[Mapping[str, Mapping[str, int]]] = {
    "header": {"/text/text": HEADER},
    "section": {"/text/text": SECTION},
    "context": {"/elements/0/text": SECTION},
    "rich_text": {"/elements/0/elements/0/text": SECTION},
    "button": {
        "/text/text": BUTTON,
        "/value": VALUE,
        "/action_id": ID,
        "/confirm/title/text": CONFIRM_TITLE,
        "/confirm/text/text": CONFIRM_TEXT,
        "/confirm/confirm/text": CONFIRM_BUTTON,
        "/confirm/deny/text": CONFIRM_BUTTON,
    },
}


def _broken(block: Block) -> Iterator[str]:
    if block["type"] == "actions":
        if not 0 < len(block["elements"]) <= 25:
            yield f"/elements: {len(block['elements'])}"
        for index, element in enumerate(block["elements"]):
            yield from (f"/elements/{index}{each}" for each in _broken(element))
        return
    for pointer, limit in _LIMITS[block["type"]].items():
        text = _at(block, pointer)
        if text is not None and not 0 < len(text) <= limit:
            yield f"{pointer}: {len(text)} characters of at most {limit}"


def _at(block: Any, pointer: str) -> str | None:
    for key in pointer.split("/")[1:]:
        try:
            block = block[int(key) if key.isdigit() else key]
        except (KeyError, IndexError):
            return None
    return str(block)


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list() | tuple():
            for each in value:
                yield from _strings(each)


def _cut(pieces: Iterator[str], limit: int) -> str:
    kept: list[str] = []
    room = limit
    for piece in pieces:
        if len(piece) > room:
            while kept and room < len(MORE):
                room += len(kept.pop())
            return "".join(kept) + MORE
        kept.append(piece)
        room -= len(piece)
    return "".join(kept) or "-"


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character


def _soft(text: str) -> str:
    """Keep foreign text from styling ours: a backtick becomes an apostrophe, line ends become blanks."""
    return "'" if text == "`" else " " if text == "\n" else text
