"""Slack and the desk kept in line: a thread an incident, its first message as it should read, milestones.

What was sent carries the incident, a digest of its content and the milestone's key as message metadata. So
after a crash, or a call whose outcome is unknown, the message is looked up before anything is sent again.
"""

import json
from datetime import UTC, datetime, timedelta

import structlog

from bot.chat import (
    Chat,
    ChatRefusedError,
    ChatUnavailableError,
    ChatUnknownError,
    MessageMetadata,
    PostedMessage,
)
from bot.incidents.incident import Incident, State
from bot.incidents.store import IncidentStore, OpenIncident, PostedThread
from bot.messages.blocks import Message
from bot.messages.reply import replies
from bot.messages.root import root
from reconciler.incidents.digests import digest
from reconciler.incidents.paths import CLOSED

log = structlog.get_logger("bot.lifecycle")


ROOT = "root"
"""Part of an incident that is its thread's first message."""

LOOK_BACK = timedelta(hours=24)
"""How far back a thread is looked for that Git does not know of: a crash came between posting and noting."""

DELETED = frozenset({"message_not_found", "thread_not_found"})
"""Slack's words for a thread that a person has deleted: it is posted once more."""

WAIT_FOR_OFFER = timedelta(seconds=5)
"""How long a new incident's message waits for the list of pods before it is posted without."""


class RateLimit:
    """Lets `burst` things pass at once and then one every `every`."""

    def __init__(self, burst: int, every: timedelta) -> None:
        self._burst, self._every = burst, every
        self._full_at = datetime.min.replace(tzinfo=UTC)

    def take(self, now: datetime) -> bool:
        """Whether one more may pass now; counts it if so."""
        full_at = max(self._full_at, now) + self._every
        if full_at - now > self._burst * self._every:
            return False
        self._full_at = full_at
        return True


class ThreadLoop:
    """Keeps desk and channel in line. `edit_after` is the least time between edits of one message that
    only bring news; a decision and its result are shown at once."""

    def __init__(self, store: IncidentStore, chat: Chat, edit_after: timedelta) -> None:
        self._store = store
        self._chat = chat
        self._edit_after = edit_after
        self._known: dict[str, PostedMessage] | None = None
        # Slack takes about one post a second a channel and 50 edits a minute; decisions keep the rest.
        self._new = RateLimit(3, timedelta(seconds=1.1))
        self._news = RateLimit(10, timedelta(seconds=1.5))

    async def sync(self) -> float:
        """Send what is missing; return the seconds after which a failed call may be tried again, else 0."""
        wait, trouble = 0.0, ""
        for open_incident in sorted(self._store.by_id.values(), key=_urgency):
            try:
                await self._sync(open_incident)
            except ChatUnavailableError as error:
                wait, trouble = max(wait, error.retry_after_seconds), str(error)
            except ChatUnknownError as error:
                # What is known of the channel may be wrong now: it is read again before the next post.
                self._known, open_incident.shown.keys = None, None
                wait, trouble = max(wait, 1.0), str(error)
        self._store.report_trouble("slack", trouble)
        return wait

    async def _sync(self, open_incident: OpenIncident) -> None:
        if not open_incident.shown.lost:
            try:
                if not await self._find(open_incident):
                    return
                await self._show(open_incident)
                await self._tell(open_incident)
            except ChatRefusedError as error:
                self._refused(open_incident, error)
                return
        self._finish(open_incident)

    def _refused(self, open_incident: OpenIncident, error: ChatRefusedError) -> None:
        shown, incident = open_incident.shown, open_incident.incident
        log.warning("thread_refused", incident=incident.id, node=incident.node, reason=error.code)
        if error.code in DELETED and not shown.reposted:
            open_incident.shown = PostedThread(reposted=True)
            self._known = None
        else:
            # Final: asking again would not help, and the story in Git goes on without a thread.
            shown.lost = True
            self._store.report_trouble(f"thread {incident.id}", str(error))

    async def _find(self, open_incident: OpenIncident) -> bool:
        """Make sure that the thread is there and what it shows is known; False while it must wait."""
        shown = open_incident.shown
        if _waits_for_offer(open_incident, self._store.now()):
            return False
        if shown.ts is None:
            found = (await self._roots()).get(open_incident.incident.id)
            if found is None:
                return await self._post(open_incident)
            shown.channel, shown.ts = self._chat.channel, found.ts
            self._store.changed.notify()
        if shown.keys is None:
            self._recall(open_incident, await self._chat.thread(shown.channel, shown.ts))
        return True

    async def _roots(self) -> dict[str, PostedMessage]:
        if self._known is None:
            oldest = min((each.opened_at for each in self._store.incidents), default=self._store.now())
            since = min(oldest, self._store.now()) - LOOK_BACK
            self._known = {each.mark.incident: each for each in reversed(await self._chat.roots(since))}
        return self._known

    def _recall(self, open_incident: OpenIncident, sent: tuple[PostedMessage, ...]) -> None:
        ours = [each.mark for each in sent if each.mark.incident == open_incident.incident.id]
        for mark in ours:
            if mark.part == ROOT:
                open_incident.shown.text_digest = mark.text_digest
                self._continue_from(open_incident, mark)
        open_incident.shown.keys = {mark.part for mark in ours}

    def _continue_from(self, open_incident: OpenIncident, mark: MessageMetadata) -> None:
        """Take up the revision that the buttons show, if they stand for what we would show; else pass it."""
        incident = open_incident.incident
        if incident.stamp == mark.stamp and incident.state is State.OPEN:
            self._store.update(open_incident, revision=mark.revision)
        elif incident.revision <= mark.revision:
            self._store.update(open_incident, revision=mark.revision + 1)

    async def _post(self, open_incident: OpenIncident) -> bool:
        if not self._new.take(self._store.now()):
            return False
        shown, incident = open_incident.shown, open_incident.incident
        message = root(self._store.standing(open_incident))
        text_digest = _digest(message)
        shown.ts = await self._chat.post(message, _mark(incident, ROOT, text_digest))
        shown.keys, shown.state, shown.channel = {ROOT}, incident.state, self._chat.channel
        shown.text_digest, shown.edited_at = text_digest, self._store.now()
        self._store.metrics.told.observe((self._store.now() - incident.opened_at).total_seconds())
        log.info("thread_posted", incident=incident.id, node=incident.node, ts=shown.ts)
        self._store.changed.notify()
        return True

    async def _show(self, open_incident: OpenIncident) -> None:
        shown, incident = open_incident.shown, open_incident.incident
        message = root(self._store.standing(open_incident))
        text_digest, now = _digest(message), self._store.now()
        if shown.ts is None or text_digest == shown.text_digest:
            return
        if incident.state is shown.state and not self._due(shown, now):
            return
        await self._chat.edit(shown.channel, shown.ts, message, _mark(incident, ROOT, text_digest))
        shown.text_digest, shown.state, shown.edited_at = text_digest, incident.state, now

    def _due(self, shown: PostedThread, now: datetime) -> bool:
        if shown.edited_at is not None and now - shown.edited_at < self._edit_after:
            return False
        return self._news.take(now)

    async def _tell(self, open_incident: OpenIncident) -> None:
        shown, incident = open_incident.shown, open_incident.incident
        for each in replies(incident):
            if shown.keys is None or each.key in shown.keys:
                continue
            mark = _mark(incident, each.key, _digest(each.message))
            await self._chat.post(each.message, mark, shown.ts)
            shown.keys.add(each.key)

    def _finish(self, open_incident: OpenIncident) -> None:
        incident = open_incident.incident
        told = open_incident.shown.lost or open_incident.shown.text_digest == _digest(
            root(self._store.standing(open_incident))
        )
        if incident.state is State.CLOSED and CLOSED in incident.recorded and told:
            self._store.drop(incident.id)


def _mark(incident: Incident, part: str, text_digest: str) -> MessageMetadata:
    return MessageMetadata(incident.id, part, text_digest, incident.revision, incident.stamp)


def _digest(message: Message) -> str:
    return digest(json.dumps([message.text, message.blocks]))


def _waits_for_offer(open_incident: OpenIncident, now: datetime) -> bool:
    undecided = open_incident.looked_at is None and open_incident.incident.state is State.OPEN
    return undecided and now - open_incident.since < WAIT_FOR_OFFER


def _urgency(open_incident: OpenIncident) -> tuple[bool, float]:
    """What has a new state first, then in the order of opening."""
    return (
        open_incident.incident.state is open_incident.shown.state,
        open_incident.incident.opened_at.timestamp(),
    )
