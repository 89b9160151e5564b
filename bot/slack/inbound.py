"""Clicks, modals and commands from Slack → decisions and answers. Acknowledge first, work afterwards.

Slack expects an acknowledgement within three seconds and does not send the click again, so nothing here waits
before it. Every click gets an answer.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.chat import ChatRefusedError, ChatUnavailableError, ChatUnknownError
from bot.command import ListIncidents, ShowHelp, ShowIncident, ShowStatus, UnknownCommand, parse
from bot.incidents.status import StatusReader
from bot.loops.decide import ButtonClick, Decisions
from bot.messages import answer
from bot.messages.answer import REASON_BLOCK, REJECTION
from bot.messages.blocks import Message
from bot.messages.root import APPROVE, REJECT, RENEW, RESOLVE
from bot.metrics import Metrics
from bot.slack.outbound import SlackChat

log = structlog.get_logger("bot.slack")

COMMAND: Final = "/cluster"

ANSWER_ATTEMPTS: Final = 5
"""How often an answer to a person is tried."""

ANSWER_WAIT_SECONDS: Final = 2.0
"""Longest wait between two of these tries."""

Body = dict[str, Any]


class SlackInbound:
    """Takes clicks, modals and commands. `team` is the id of the bot's workspace, empty until Slack says it.

    `sleep` waits for a number of seconds.
    """

    def __init__(
        self,
        chat: SlackChat,
        status: StatusReader,
        decisions: Decisions,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._chat = chat
        self._status = status
        self._decisions = decisions
        self._metrics = metrics
        self._sleep = sleep
        self._tasks: set[asyncio.Task[None]] = set()
        self.team = ""

    def app(self, signing_secret: str) -> AsyncApp:
        """Return the Bolt app. `signing_secret` is empty in Socket Mode, which has no signatures."""
        logger = logging.getLogger("bot.slack.bolt")
        chat = self._chat

        async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
            user = chat.user or None
            return AuthorizeResult(
                enterprise_id=enterprise_id, team_id=team_id, bot_user_id=user, bot_token=chat.token()
            )

        app = AsyncApp(
            signing_secret=signing_secret,
            client=chat.client,
            authorize=authorize,
            logger=logger,
            # Only signed requests: the certificate itself answers a certificate check.
            ssl_check_enabled=False,
            raise_error_for_unhandled_request=False,
        )
        for action in (APPROVE, RENEW, RESOLVE):
            app.action(action)(_by_name(self._pressed))
        app.action(REJECT)(_by_name(self._rejecting))
        app.action(re.compile(".*"))(_only_ack)
        app.view(REJECTION)(_by_name(self._rejected))
        app.view_closed(re.compile(".*"))(_only_ack)
        app.command(COMMAND)(_by_name(self._command))
        app.event(re.compile(".*"))(_ignore_event)
        app.error(_failed)
        return app

    async def close(self) -> None:
        """Give the clicks in progress five seconds to finish."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _pressed(self, ack: AsyncAck, body: Body) -> None:
        await ack()
        if self._is_foreign(body):
            return
        action, channel = body["actions"][0], _channel(body, self._chat.channel)
        clicked = ButtonClick(action["action_id"], body["user"]["id"], action.get("value") or "")
        self._spawn(self._decide(clicked, channel))

    async def _rejecting(self, ack: AsyncAck, body: Body) -> None:
        await ack()
        if self._is_foreign(body):
            return
        value = body["actions"][0].get("value") or ""
        view = answer.rejection_modal(value.split(" ")[0] or "unknown", value)
        self._spawn(self._open(body["trigger_id"], view, body["user"]["id"]))

    async def _rejected(self, ack: AsyncAck, body: Body) -> None:
        view = body["view"]
        reason = str(view["state"]["values"][REASON_BLOCK][REASON_BLOCK].get("value") or "").strip()
        if not reason:
            await ack(response_action="errors", errors={REASON_BLOCK: "Say why in a few words."})
            return
        await ack()
        if not self._is_foreign(body):
            clicked = ButtonClick(REJECT, body["user"]["id"], view["private_metadata"], reason)
            self._spawn(self._decide(clicked, self._chat.channel))

    async def _command(self, ack: AsyncAck, body: Body) -> None:
        message = self._answer(str(body.get("text") or ""))
        await ack(text=message.text, blocks=list(message.blocks), response_type="ephemeral")

    def _answer(self, text: str) -> Message:
        match parse(text):
            case ShowStatus():
                return answer.status(self._status.status())
            case ListIncidents():
                return answer.incidents(self._status.incidents())
            case ShowIncident(named):
                found = self._status.incident(named)
                if found is None:
                    return answer.no_such_incident(named, self._status.incidents())
                return answer.incident(found)
            case UnknownCommand() as wrong:
                return answer.mistake(wrong)
            case ShowHelp():
                return answer.help_text()

    async def _decide(self, clicked: ButtonClick, channel: str) -> None:
        denied = await self._decisions.click(clicked)
        if denied is not None:
            await self._answer_privately(channel, clicked.user, answer.denied(denied))

    async def _open(self, trigger: str, view: Body, user: str) -> None:
        try:
            await self._chat.open_modal(trigger, view)
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("modal_not_opened", user=user, reason=str(error))
            await self._answer_privately(self._chat.channel, user, answer.failed())

    async def _answer_privately(self, channel: str, user: str, message: Message) -> None:
        """Tell one person, and try again while Slack is away for a moment: every click gets an answer."""
        for left in reversed(range(ANSWER_ATTEMPTS)):
            try:
                return await self._chat.post_ephemeral(channel, user, message)
            except ChatUnavailableError as error:
                wait, reason = min(error.retry_after_seconds, ANSWER_WAIT_SECONDS), str(error)
            except (ChatUnknownError, ChatRefusedError) as error:
                wait, reason = ANSWER_WAIT_SECONDS, str(error)
            if not left:
                log.warning("answer_not_delivered", user=user, reason=reason)
                break
            await self._sleep(wait)
        return None

    def _is_foreign(self, body: Body) -> bool:
        """Whether the click comes from another workspace than the bot's, as in a channel that both share."""
        team = str((body.get("team") or {}).get("id") or "")
        foreign = bool(self.team) and bool(team) and team != self.team
        if foreign:
            log.warning("click_of_another_workspace", team=team)
            self._metrics.denied.labels("another-workspace").inc()
        return foreign

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            log.exception("click_failed")


async def _failed(error: Exception) -> BoltResponse:
    log.error("slack_request_failed", reason=f"{type(error).__name__}: {error}"[:200])
    return BoltResponse(status=200, body="")


def _by_name(work: Callable[[AsyncAck, Body], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Return `work` as a plain function: Bolt passes arguments by name, and would look for `self` too."""

    async def handle(ack: AsyncAck, body: Body) -> None:
        await work(ack, body)

    return handle


def _channel(body: Body, ours: str) -> str:
    return str((body.get("channel") or body.get("container") or {}).get("id") or ours)


async def _only_ack(ack: AsyncAck) -> None:
    await ack()


async def _ignore_event() -> None:
    """Ignore events: the loops read everything that an event could say."""
