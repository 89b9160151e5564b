"""A message and its earlier versions, and its shape on the wire."""

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.lab.slack.blocks import elements
from tests.lab.slack.wire import Json

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class Version:
    """What a message showed from `at` (Unix seconds) on."""

    text: str
    blocks: list[Json]
    at: float


@dataclass
class Message:
    """One message; `versions[-1]` is what people see now."""

    channel: str
    ts: str
    user: str
    versions: list[Version]
    thread_ts: str | None = None
    bot_id: str | None = None
    metadata: Json | None = None
    broadcast: bool = False
    only_for: str | None = None
    deleted: bool = False
    edited_ts: str | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)

    @property
    def shown(self) -> Version:
        """The newest version."""
        return self.versions[-1]

    @property
    def is_root(self) -> bool:
        """Whether it stands in the channel itself (a root or a broadcast reply)."""
        return self.thread_ts in (None, self.ts) or self.broadcast


def with_identifiers(blocks: list[Json], random: Random) -> list[Json]:
    """The blocks, with the block_ids and action_ids that Slack fills in."""
    filled = deepcopy(blocks)
    for block in filled:
        if not block.get("block_id"):
            block["block_id"] = "".join(random.choices(_ALPHABET, k=5))
    for _, element in elements(filled):
        if not element.get("action_id"):
            element["action_id"] = "".join(random.choices(_ALPHABET, k=5))
    return filled


def wire(message: Message, *, metadata: bool = False, version: Version | None = None) -> Json:
    """The message as the Web API and interactions show it (without its thread's counters)."""
    shown = version or message.shown
    out: Json = {
        "type": "message",
        "user": message.user,
        "ts": message.ts,
        "text": shown.text,
        **({"blocks": deepcopy(shown.blocks)} if shown.blocks else {}),
        **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
    }
    out.update(_extras(message))
    if metadata and message.metadata:
        out["metadata"] = deepcopy(message.metadata)
    return out


def _extras(message: Message) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if message.bot_id:
        out["bot_id"] = message.bot_id
    if message.edited_ts:
        out["edited"] = {"user": message.user, "ts": message.edited_ts}
    if message.broadcast:
        out["subtype"] = "thread_broadcast"
    if message.deleted:
        out["subtype"] = "tombstone"
    if message.only_for:
        out["is_ephemeral"] = True
    if message.reactions:
        out["reactions"] = [
            {"name": name, "users": list(users), "count": len(users)}
            for name, users in message.reactions.items()
        ]
    return out
