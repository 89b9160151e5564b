"""What people do in Slack → decisions and answers. Acknowledged first, worked on afterwards.

Slack wants to be answered within three seconds and then forgets the click, so nothing here waits before the
acknowledgement, and every click gets an answer.
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
from bot.incidents.store import IncidentStore
from bot.loops.decide import ButtonPress, Decisions
from bot.messages import answer
from bot.messages.answer import REASON_BLOCK, REJECTION, ClusterStatus
from bot.messages.blocks import Message
from bot.messages.root import APPROVE, REJECT, RENEW, RESOLVE
from bot.slack.outbound import SlackChat

log = structlog.get_logger("bot.slack")

COMMAND: Final = "/cluster"

WHISPERS: Final = 5
"""How often telling a person is tried."""

WHISPER_SECONDS: Final = 2.0
"""Longest wait between two of these tries."""

Body = dict[str, Any]


class SlackInbound:
    """Takes clicks, modals and commands. `reporting` counts the nodes whose reports are recent."""

    def __init__(
        self, chat: SlackChat, store: IncidentStore, decisions: Decisions, reporting: Callable[[], int]
    ) -> None:
        self._chat = chat
        self._store = store
        self._decisions = decisions
        self._reporting = reporting
        self._tasks: set[asyncio.Task[None]] = set()
        self.team = ""

    def app(self, signing_secret: str) -> AsyncApp:
        """Return the Bolt app; `signing_secret` is empty in Socket Mode, which has no signatures."""
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
            # Only signed requests: a certificate check is answered by the certificate.
            ssl_check_enabled=False,
            raise_error_for_unhandled_request=False,
        )
        for action in (APPROVE, RENEW, RESOLVE):
            app.action(action)(_by_name(self._pressed))
        app.action(REJECT)(_by_name(self._rejecting))
        app.action(re.compile(".*"))(_only_ack)
        app.view(REJECTION)(_by_name(self._rejected))
        app.view_closed(re.compile(".*"))(_only_ack)
        app.command(COMMAND)(_by_name(self._asked))
        app.event(re.compile(".*"))(_only_hear)
        app.error(_failed)
        return app

    async def close(self) -> None:
        """Let the clicks in work finish, for a moment."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    async def _pressed(self, ack: AsyncAck, body: Body) -> None:
        await ack()
        if self._is_foreign(body):
            return
        action, channel = body["actions"][0], _channel(body, self._chat.channel)
        pressed = ButtonPress(action["action_id"], body["user"]["id"], action.get("value") or "")
        self._spawn(self._decide(pressed, channel))

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
            pressed = ButtonPress(REJECT, body["user"]["id"], view["private_metadata"], reason)
            self._spawn(self._decide(pressed, self._chat.channel))

    async def _asked(self, ack: AsyncAck, body: Body) -> None:
        message = self._answer(str(body.get("text") or ""))
        await ack(text=message.text, blocks=list(message.blocks), response_type="ephemeral")

    def _answer(self, text: str) -> Message:
        match parse(text):
            case ShowStatus():
                return answer.status(self._cluster_status())
            case ListIncidents():
                return answer.incidents(self._store.incidents)
            case ShowIncident(named):
                found = self._store.by_id.get(named)
                if found is None:
                    return answer.no_such_incident(named, self._store.incidents)
                return answer.incident(found.incident)
            case UnknownCommand() as wrong:
                return answer.mistake(wrong)
            case ShowHelp():
                return answer.help_text()

    def _cluster_status(self) -> ClusterStatus:
        nodes = self._store.nodes
        return ClusterStatus(
            cluster=self._store.cluster,
            nodes=None if nodes is None else len(nodes),
            ready=None if nodes is None else sum(node.ready for node in nodes.values()),
            reporting=self._reporting(),
            incidents=self._store.incidents,
            trouble=tuple(f"{name}: {text}" for name, text in sorted(self._store.trouble.items())),
        )

    async def _decide(self, pressed: ButtonPress, channel: str) -> None:
        denied = await self._decisions.press(pressed)
        if denied is not None:
            await self._whisper(channel, pressed.user, answer.denied(denied))

    async def _open(self, trigger: str, view: Body, user: str) -> None:
        try:
            await self._chat.ask(trigger, view)
        except (ChatUnavailableError, ChatUnknownError, ChatRefusedError) as error:
            log.warning("modal_not_opened", user=user, reason=str(error))
            await self._whisper(self._chat.channel, user, answer.failed())

    async def _whisper(self, channel: str, user: str, message: Message) -> None:
        """Tell one person; while Slack is away for a moment, again, because every click gets an answer."""
        for left in reversed(range(WHISPERS)):
            try:
                return await self._chat.whisper(channel, user, message)
            except ChatUnavailableError as error:
                wait, reason = min(error.retry_after_seconds, WHISPER_SECONDS), str(error)
            except (ChatUnknownError, ChatRefusedError) as error:
                wait, reason = WHISPER_SECONDS, str(error)
            if not left:
                log.warning("answer_not_delivered", user=user, reason=reason)
                break
            await asyncio.sleep(wait)
        return None

    def _is_foreign(self, body: Body) -> bool:
        """Whether the click is from another workspace than the one we belong to."""
        team = str((body.get("team") or {}).get("id") or "")
        foreign = bool(self.team) and bool(team) and team != self.team
        if foreign:
            log.warning("click_of_another_workspace", team=team)
            self._store.metrics.denied.labels("another-workspace").inc()
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
    """Return `work` as a plain function: Bolt passes arguments by name, and would pass `self` too."""

    async def handle(ack: AsyncAck, body: Body) -> None:
        await work(ack, body)

    return handle


def _channel(body: Body, ours: str) -> str:
    return str((body.get("channel") or body.get("container") or {}).get("id") or ours)


async def _only_ack(ack: AsyncAck) -> None:
    await ack()


async def _only_hear() -> None:
    """Events carry nothing that a look at the world does not tell."""
