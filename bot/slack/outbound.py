"""Slack's Web API: posts, edits and look-ups, with "not carried out", "unknown" and "refused" told apart.

A call is sent once. When the answer is lost the outcome is unknown, and the caller looks before it sends the call
again; only a rate limit is known to have stopped it. A limited method is paused, other methods are not.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.chat import ChatRefusedError, ChatUnavailableError, ChatUnknownError, MessageMetadata, PostedMessage
from bot.incidents.approve import Account
from bot.messages.blocks import Block, Message
from bot.metrics import Metrics

log = structlog.get_logger("bot.slack")

EVENT_TYPE: Final = "clusterwright_incident"
"""Type of the metadata on every message that the bot posts."""

PAGES: Final = 20
"""Most pages of history to read: 4,000 messages."""

PAGE: Final = 200

PAUSE_SECONDS: Final = 1.0
"""How long no call is sent after one without an answer."""

FIXABLE: Final = frozenset({
    "channel_not_found", "not_in_channel", "is_archived", "is_inactive", "invalid_auth", "not_authed",
    "account_inactive", "token_revoked", "token_expired", "missing_scope", "restricted_action",
    "team_access_not_granted", "access_denied",
})  # fmt: skip
"""Refusals of the whole channel or app. A person has to fix the cause; then everything goes on."""

FIXABLE_SECONDS: Final = 30.0
"""How long to wait before trying whether a person has fixed it."""

TRANSIENT: Final = frozenset(
    {"ratelimited", "message_limit_exceeded", "service_unavailable", "request_timeout"}
)
"""Refusals that say that nothing was done and that the call may be sent again."""

UNKNOWN: Final = frozenset({"internal_error", "fatal_error"})
"""Errors after which the call may have been carried out in part."""


class SlackChat:
    """Posts in one channel. Implements `bot.chat.Chat`.

    `token` is read again for each call. `monotonic` returns seconds on a clock that never steps.
    """

    def __init__(
        self,
        client: AsyncWebClient,
        token: Callable[[], str],
        channel: str,
        metrics: Metrics,
        monotonic: Callable[[], float],
    ) -> None:
        self.channel = channel
        self.client = client
        self.token = token
        self.user = ""
        self._metrics = metrics
        self._monotonic = monotonic
        self._paused: dict[str, float] = {}

    @classmethod
    def connect(
        cls, base_url: str, timeout_seconds: float, token: Callable[[], str], channel: str, metrics: Metrics
    ) -> "SlackChat":
        """Return the chat of a workspace. Sends nothing yet."""
        logger = logging.getLogger("bot.slack.web")
        # Below this level the library logs whole requests.
        logger.setLevel(logging.WARNING)
        timeout = max(1, round(timeout_seconds))
        client = AsyncWebClient(base_url=base_url, timeout=timeout, retry_handlers=[], logger=logger)
        return cls(client, token, channel, metrics, time.monotonic)

    async def authenticate(self) -> str:
        """Ask Slack who the bot is and return its team id. Only messages of that user count as the bot's."""
        answer = await self._call("auth.test", self.client.auth_test)
        self.user = str(answer["user_id"])
        return str(answer["team_id"])

    async def post(self, message: Message, metadata: MessageMetadata, thread: str | None = None) -> str:
        """Post a message and return its `ts`."""
        answer = await self._call(
            "chat.postMessage",
            lambda: self.client.chat_postMessage(
                channel=self.channel,
                thread_ts=thread,
                text=message.text,
                blocks=list(message.blocks),
                metadata=_metadata(metadata),
                unfurl_links=False,
                unfurl_media=False,
            ),
        )
        return str(answer["ts"])

    async def edit(self, channel: str, ts: str, message: Message, metadata: MessageMetadata) -> None:
        """Replace a message."""
        await self._call(
            "chat.update",
            lambda: self.client.chat_update(
                channel=channel,
                ts=ts,
                text=message.text,
                blocks=list(message.blocks),
                metadata=_metadata(metadata),
            ),
        )

    async def post_ephemeral(self, channel: str, user: str, message: Message) -> None:
        """Post a message that only one person sees."""
        await self._call(
            "chat.postEphemeral",
            lambda: self.client.chat_postEphemeral(
                channel=channel, user=user, text=message.text, blocks=list(message.blocks)
            ),
        )

    async def open_modal(self, trigger: str, view: Block) -> None:
        """Open a modal for the person whose click `trigger` came from."""
        await self._call("views.open", lambda: self.client.views_open(trigger_id=trigger, view=view))

    async def roots(self, since: datetime) -> tuple[PostedMessage, ...]:
        """Return the bot's root messages since a moment, newest first."""
        oldest = f"{since.timestamp():.6f}"
        return await self._pages(
            "conversations.history",
            lambda cursor: self.client.conversations_history(
                channel=self.channel, oldest=oldest, limit=PAGE, cursor=cursor, include_all_metadata=True
            ),
        )

    async def thread(self, channel: str, ts: str) -> tuple[PostedMessage, ...]:
        """Return the bot's messages in a thread, the root included."""
        return await self._pages(
            "conversations.replies",
            lambda cursor: self.client.conversations_replies(
                channel=channel, ts=ts, limit=PAGE, cursor=cursor, include_all_metadata=True
            ),
        )

    async def account(self, user: str) -> Account | None:
        """Return who a user is now, None when Slack knows no such user."""
        try:
            answer = await self._call("users.info", lambda: self.client.users_info(user=user))
        except ChatRefusedError as error:
            if error.code in ("user_not_found", "user_not_visible", "users_not_found"):
                return None
            raise
        return _account(answer["user"])

    async def _pages(
        self, method: str, page: Callable[[str | None], Awaitable[Any]]
    ) -> tuple[PostedMessage, ...]:
        found: list[PostedMessage] = []
        cursor: str | None = None
        for _ in range(PAGES):
            answer = await self._call(method, partial(page, cursor))
            found += [sent for each in answer["messages"] if (sent := self._posted(each)) is not None]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                break
        return tuple(found)

    def _posted(self, raw: Mapping[str, Any]) -> PostedMessage | None:
        """Return a message of the bot. Anybody can write metadata, so only the bot's own messages count."""
        metadata = raw.get("metadata") or {}
        if metadata.get("event_type") != EVENT_TYPE or raw.get("user") != self.user:
            return None
        payload = metadata.get("event_payload") or {}
        try:
            ours = MessageMetadata(
                str(payload["incident"]),
                str(payload["part"]),
                str(payload["digest"]),
                int(payload["revision"]),
                str(payload["stamp"]),
            )
        except (KeyError, TypeError, ValueError):
            return None
        return PostedMessage(str(raw["ts"]), ours)

    async def _call(self, method: str, send: Callable[[], Awaitable[Any]]) -> Any:
        now = self._monotonic()
        until = max(self._paused.get(method, 0.0), self._paused.get("*", 0.0))
        if now < until:
            raise ChatUnavailableError(f"{method} waits", until - now)
        try:
            self.client.token = self.token()
        except OSError as error:
            raise self._pause(method, method, "the bot token's file cannot be read", PAUSE_SECONDS) from error
        try:
            answer = await send()
        except SlackApiError as error:
            failure = self._refusal(method, error)
            raise failure from error
        except aiohttp.ClientConnectorError as error:
            raise self._pause("*", method, "unreachable", PAUSE_SECONDS) from error
        except (aiohttp.ClientError, TimeoutError, OSError, AttributeError, ValueError, TypeError) as error:
            # The last three are how the library fails on an answer that is not what it expects.
            self._pause("*", method, "unknown", PAUSE_SECONDS)
            raise ChatUnknownError(f"{method}: no answer from Slack ({type(error).__name__})") from error
        self._metrics.slack.labels(method, "ok").inc()
        return answer

    def _refusal(self, method: str, error: SlackApiError) -> Exception:
        response = error.response
        status: int = getattr(response, "status_code", 200)
        said = getattr(response, "data", None)
        # An error page of a proxy is not JSON, and does not say what was done.
        answer: Mapping[str, Any] = said if isinstance(said, dict) else {}
        code = str(answer.get("error") or "")
        if status == 429 or code in TRANSIENT:
            return self._pause(
                method, method, "ratelimited", _seconds(getattr(response, "headers", {}) or {})
            )
        if status >= 500 or code in UNKNOWN or not code:
            self._pause("*", method, "error", PAUSE_SECONDS)
            return ChatUnknownError(f"{method}: Slack answered {status} {code}".rstrip())
        if code in FIXABLE:
            needed = f", needs scope {answer.get('needed')}" if code == "missing_scope" else ""
            return self._pause(method, method, f"{code}{needed}", FIXABLE_SECONDS)
        self._metrics.slack.labels(method, code).inc()
        detail = (answer.get("response_metadata") or {}).get("messages")
        log.warning("slack_refused", method=method, code=code, detail=detail)
        return ChatRefusedError(code)

    def _pause(self, bucket: str, method: str, why: str, seconds: float) -> ChatUnavailableError:
        self._paused[bucket] = self._monotonic() + seconds
        self._metrics.slack.labels(method, why.split(",", maxsplit=1)[0]).inc()
        return ChatUnavailableError(f"{method}: {why}", seconds)


def _seconds(headers: Mapping[str, Any]) -> float:
    values = {str(key).lower(): value for key, value in headers.items()}
    found = values.get("retry-after", "")
    text = found[0] if isinstance(found, list) else str(found)
    return float(text) if text.isdigit() else PAUSE_SECONDS


def _metadata(metadata: MessageMetadata) -> dict[str, Any]:
    return {
        "event_type": EVENT_TYPE,
        "event_payload": {
            "incident": metadata.incident,
            "part": metadata.part,
            "digest": metadata.text_digest,
            "revision": metadata.revision,
            "stamp": metadata.offer_digest,
        },
    }


def _account(raw: Mapping[str, Any]) -> Account:
    profile = raw.get("profile") or {}
    return Account(
        id=str(raw["id"]),
        name=str(profile.get("real_name") or raw.get("real_name") or raw.get("name") or raw["id"]),
        email=profile.get("email") or None,
        bot=bool(raw.get("is_bot")) or bool(raw.get("is_workflow_bot")),
        guest=bool(raw.get("is_restricted") or raw.get("is_ultra_restricted") or raw.get("is_stranger")),
        gone=bool(raw.get("deleted")),
    )
