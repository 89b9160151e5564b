"""Keeps the Slack threads in line: one thread per incident, its root message as it should read, and replies.

Every message carries the incident, a digest of its content and its key as message metadata. After a crash, or a
call whose outcome is unknown, the bot looks for the message before it sends anything again.
"""

import json
from datetime import datetime, timedelta
from typing import Final

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
from bot.loops.rate_limit import RateLimit
from bot.messages.blocks import Message
from bot.messages.reply import replies
from bot.messages.root import root
from reconciler.incidents.digests import digest
from reconciler.incidents.paths import CLOSED

log = structlog.get_logger("bot.lifecycle")

ROOT: Final = "root"
"""Part of an incident that is the first message of its thread."""

LOOK_BACK: Final = timedelta(hours=24)
"""How far back to look for a thread that Git does not know: the bot crashed between posting and recording it."""

DELETED: Final = frozenset({"message_not_found", "thread_not_found"})
"""Slack's errors for a thread that a person deleted: the bot posts it once more."""

WAIT_FOR_OFFER: Final = timedelta(seconds=5)
"""How long the message of a new incident waits for the list of pods before it is posted without one."""

NEW_THREADS: Final = (3, timedelta(seconds=1.1))
"""Burst and interval of new root messages: Slack takes about one post a second per channel."""

EDITS: Final = (10, timedelta(seconds=1.5))
"""Burst and interval of edits that only bring news: Slack takes 50 a minute, and decisions need the rest."""


class ThreadLoop:
    """Keeps the open incidents and the channel in line.

    `edit_after` is the least time between two edits of one message that only bring news. A decision and its
    result are shown at once.
    """

    def __init__(self, store: IncidentStore, chat: Chat, edit_after: timedelta) -> None:
        self._store = store
        self._chat = chat
        self._edit_after = edit_after
        self._posted: dict[str, PostedMessage] | None = None
        self._new_threads = RateLimit(*NEW_THREADS)
        self._edits = RateLimit(*EDITS)

    async def sync(self) -> float:
        """Send what is missing; return the seconds after which a failed call may be tried again, else 0."""
        wait, trouble = 0.0, ""
        for open_incident in sorted(self._store.by_id.values(), key=_urgency):
            try:
                await self._sync(open_incident)
            except ChatUnavailableError as error:
                wait, trouble = max(wait, error.retry_after_seconds), str(error)
            except ChatUnknownError as error:
                # What is known of the channel may be wrong now, so it is read again before the next post.
                self._posted, open_incident.thread.keys = None, None
                wait, trouble = max(wait, 1.0), str(error)
        self._store.report_trouble("slack", trouble)
        return wait

    async def _sync(self, open_incident: OpenIncident) -> None:
        if not open_incident.thread.lost:
            try:
                if not await self._ensure_thread(open_incident):
                    return
                await self._edit_root(open_incident)
                await self._post_replies(open_incident)
            except ChatRefusedError as error:
                self._refused(open_incident, error)
                return
        self._remove_if_finished(open_incident)

    def _refused(self, open_incident: OpenIncident, error: ChatRefusedError) -> None:
        thread, incident = open_incident.thread, open_incident.incident
        log.warning("thread_refused", incident=incident.id, node=incident.node, reason=error.code)
        if error.code in DELETED and not thread.reposted:
            open_incident.thread = PostedThread(reposted=True)
            self._posted = None
        else:
            # Final: asking again would not help. The incident goes on in Git without a thread.
            thread.lost = True
            self._store.report_trouble(f"thread {incident.id}", str(error))

    async def _ensure_thread(self, open_incident: OpenIncident) -> bool:
        """Make sure that the thread exists and what it shows is known; False while it has to wait."""
        thread = open_incident.thread
        if _waits_for_offer(open_incident, self._store.now()):
            return False
        if thread.ts is None:
            found = (await self._roots()).get(open_incident.incident.id)
            if found is None:
                return await self._post_root(open_incident)
            thread.channel, thread.ts = self._chat.channel, found.ts
            self._store.changed.notify()
        if thread.keys is None:
            self._adopt(open_incident, await self._chat.thread(thread.channel, thread.ts))
        return True

    async def _roots(self) -> dict[str, PostedMessage]:
        if self._posted is None:
            oldest = min((each.opened_at for each in self._store.incidents), default=self._store.now())
            since = min(oldest, self._store.now()) - LOOK_BACK
            self._posted = {each.metadata.incident: each for each in reversed(await self._chat.roots(since))}
        return self._posted

    def _adopt(self, open_incident: OpenIncident, messages: tuple[PostedMessage, ...]) -> None:
        """Take over what an earlier run posted in the thread."""
        ours = [each.metadata for each in messages if each.metadata.incident == open_incident.incident.id]
        for metadata in ours:
            if metadata.part == ROOT:
                open_incident.thread.text_digest = metadata.text_digest
                self._continue_revision(open_incident, metadata)
        open_incident.thread.keys = {metadata.part for metadata in ours}

    def _continue_revision(self, open_incident: OpenIncident, metadata: MessageMetadata) -> None:
        """Continue with the revision on the buttons if they stand for the same offer, else with a later one."""
        incident = open_incident.incident
        if incident.offer_digest == metadata.offer_digest and incident.state is State.OPEN:
            self._store.update(open_incident, revision=metadata.revision)
        elif incident.revision <= metadata.revision:
            self._store.update(open_incident, revision=metadata.revision + 1)

    async def _post_root(self, open_incident: OpenIncident) -> bool:
        if not self._new_threads.take(self._store.now()):
            return False
        thread, incident = open_incident.thread, open_incident.incident
        message = root(self._store.view(open_incident))
        text_digest = _digest(message)
        thread.ts = await self._chat.post(message, _metadata(incident, ROOT, text_digest))
        thread.keys, thread.state, thread.channel = {ROOT}, incident.state, self._chat.channel
        thread.text_digest, thread.edited_at = text_digest, self._store.now()
        self._store.metrics.post_delay.observe((self._store.now() - incident.opened_at).total_seconds())
        log.info("thread_posted", incident=incident.id, node=incident.node, ts=thread.ts)
        self._store.changed.notify()
        return True

    async def _edit_root(self, open_incident: OpenIncident) -> None:
        thread, incident = open_incident.thread, open_incident.incident
        message = root(self._store.view(open_incident))
        text_digest, now = _digest(message), self._store.now()
        if thread.ts is None or text_digest == thread.text_digest:
            return
        if incident.state is thread.state and not self._may_edit(thread, now):
            return
        await self._chat.edit(thread.channel, thread.ts, message, _metadata(incident, ROOT, text_digest))
        thread.text_digest, thread.state, thread.edited_at = text_digest, incident.state, now

    def _may_edit(self, thread: PostedThread, now: datetime) -> bool:
        if thread.edited_at is not None and now - thread.edited_at < self._edit_after:
            return False
        return self._edits.take(now)

    async def _post_replies(self, open_incident: OpenIncident) -> None:
        thread, incident = open_incident.thread, open_incident.incident
        for each in replies(incident):
            if thread.keys is None or each.key in thread.keys:
                continue
            metadata = _metadata(incident, each.key, _digest(each.message))
            await self._chat.post(each.message, metadata, thread.ts)
            thread.keys.add(each.key)

    def _remove_if_finished(self, open_incident: OpenIncident) -> None:
        incident, thread = open_incident.incident, open_incident.thread
        if incident.state is not State.CLOSED or CLOSED not in incident.recorded:
            return
        if thread.lost or thread.text_digest == _digest(root(self._store.view(open_incident))):
            self._store.remove(incident.id)


def _metadata(incident: Incident, part: str, text_digest: str) -> MessageMetadata:
    return MessageMetadata(incident.id, part, text_digest, incident.revision, incident.offer_digest)


def _digest(message: Message) -> str:
    return digest(json.dumps([message.text, message.blocks]))


def _waits_for_offer(open_incident: OpenIncident, now: datetime) -> bool:
    undecided = open_incident.pods_read_at is None and open_incident.incident.state is State.OPEN
    return undecided and now - open_incident.since < WAIT_FOR_OFFER


def _urgency(open_incident: OpenIncident) -> tuple[bool, float]:
    """Incidents with a new state first, then in the order of opening."""
    incident = open_incident.incident
    return incident.state is open_incident.thread.state, incident.opened_at.timestamp()
