"""Chat: what the loops need of Slack, and the three ways in which a call can fail."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bot.incidents.approve import Account
from bot.messages.blocks import Message


@dataclass(frozen=True, slots=True)
class MessageMetadata:
    """What a message of ours says about itself in its metadata.

    `part` is `root` or a milestone's key; `text_digest` is of its content; `revision` and `stamp` are what
    its buttons carry.
    """

    incident: str
    part: str
    text_digest: str
    revision: int
    stamp: str


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A message of ours that was found in the channel or in a thread."""

    ts: str
    mark: MessageMetadata


class ChatUnavailableError(Exception):
    """Slack did not carry the call out; try again after `retry_after_seconds`."""

    def __init__(self, reason: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class ChatUnknownError(Exception):
    """The reply is lost: the call may or may not have been carried out. Look before sending it again."""


class ChatRefusedError(Exception):
    """Slack will not do this however often it is asked; `code` is its word for why."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refused: {code}")
        self.code = code


class Chat(Protocol):
    """Slack, as far as incidents need it. Every method raises the three errors above."""

    channel: str

    async def post(self, message: Message, mark: MessageMetadata, thread: str | None = None) -> str:
        """Post a message, in a thread if one is given, and return its `ts`."""
        ...

    async def edit(self, channel: str, ts: str, message: Message, mark: MessageMetadata) -> None:
        """Replace a message."""
        ...

    async def roots(self, since: datetime) -> tuple[PostedMessage, ...]:
        """Return our root messages in the channel since a moment, newest first."""
        ...

    async def thread(self, channel: str, ts: str) -> tuple[PostedMessage, ...]:
        """Return our messages in a thread, the root included."""
        ...

    async def whisper(self, channel: str, user: str, message: Message) -> None:
        """Say something that only one person sees."""
        ...

    async def account(self, user: str) -> Account | None:
        """Return who a Slack user is, None when there is no such user."""
        ...
