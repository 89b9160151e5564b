"""Chat: what the loops need from Slack, and the three ways in which a call can fail."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.incidents.approve import Account
from bot.messages.blocks import Message


@dataclass(frozen=True, slots=True)
class MessageMetadata:
    """The metadata of a message that the bot posted.

    `part` is `root` or the key of a reply; `text_digest` is the digest of its content; `revision` and
    `offer_digest` are what its buttons carry.
    """

    incident: str
    part: str
    text_digest: str
    revision: int
    offer_digest: str


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message of the bot that was found in the channel or in a thread."""

    ts: str
    metadata: MessageMetadata


class ChatUnavailableError(Exception):
    """Slack did not carry out the call; try again after `retry_after_seconds`."""

    def __init__(self, reason: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class ChatUnknownError(Exception):
    """The answer is lost: Slack may or may not have carried out the call. Look before you send it again."""


class ChatRefusedError(Exception):
    """Slack refuses the call, however often it is sent; `code` is its error code."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refused: {code}")
        self.code = code


class Chat(Protocol):
    """Slack, as far as incidents need it. Every method raises the three errors above."""

    channel: str

    async def post(self, message: Message, metadata: MessageMetadata, thread: str | None = None) -> str:
        """Post a message, in a thread if one is given, and return its `ts`."""
        ...

    async def edit(self, channel: str, ts: str, message: Message, metadata: MessageMetadata) -> None:
        """Replace a message."""
        ...

    async def roots(self, since: datetime) -> tuple[PostedMessage, ...]:
        """Return the bot's root messages in the channel since a moment, newest first."""
        ...

    async def thread(self, channel: str, ts: str) -> tuple[PostedMessage, ...]:
        """Return the bot's messages in a thread, the root included."""
        ...

    async def post_ephemeral(self, channel: str, user: str, message: Message) -> None:
        """Post a message that only one person sees."""
        ...

    async def account(self, user: str) -> Account | None:
        """Return who a Slack user is, None when there is no such user."""
        ...
