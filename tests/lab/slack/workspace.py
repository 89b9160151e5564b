"""What a Slack workspace remembers: people, channels, groups and messages.

Everything here runs under `Workspace.changed`, which is a lock and at the same time how waiting code learns
that something happened.
"""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from tests.lab.slack.message import Message, Version, wire, with_identifiers
from tests.lab.slack.wire import Clock, Json, SlackError

TS = re.compile(r"^\d{10}\.\d{6}$")


@dataclass
class User:
    """A person (or a bot) of the workspace; guests are `is_restricted`."""

    id: str
    name: str
    email: str
    is_bot: bool = False
    is_restricted: bool = False
    deleted: bool = False
    tz: str = "Etc/UTC"


@dataclass
class Channel:
    """A channel; the app can only write where it is a member and which is not archived."""

    id: str
    name: str
    is_member: bool = True
    is_archived: bool = False
    is_im: bool = False
    messages: list[Message] = field(default_factory=list)
    lost: list[Message] = field(default_factory=list)
    last_ts_us: int = 0


@dataclass(frozen=True)
class AppIdentity:
    """Who the app under test is."""

    name: str
    team_id: str = "T0LAB0001"
    team_name: str = "Example Lab"
    app_id: str = "A0LAB0001"
    bot_id: str = "B0LAB0001"
    user_id: str = "U0LABBOT1"


class Workspace:
    """People, channels and messages of one workspace, with one app installed."""

    def __init__(self, app: AppIdentity, clock: Clock, random: Random) -> None:
        self.app = app
        self.clock = clock
        self.random = random
        self.changed = threading.Condition(threading.RLock())
        self.revision = 0
        self.users: dict[str, User] = {
            app.user_id: User(app.user_id, app.name, "", is_bot=True),
            "USLACKBOT": User("USLACKBOT", "Slackbot", "", is_bot=True),
        }
        self.channels: dict[str, Channel] = {}
        self.groups: dict[str, list[str]] = {}
        self.ephemerals: list[Message] = []
        self.watchers: list[Callable[[], None]] = []

    def touch(self) -> None:
        """Say that something visible changed."""
        with self.changed:
            self.revision += 1
            self.changed.notify_all()
            for watcher in self.watchers:
                watcher()

    def channel(self, name: object) -> Channel:
        """The channel of an id, a `#name`, or the direct messages with a user id."""
        if not isinstance(name, str):
            raise SlackError("channel_not_found")
        if name in self.users and name not in ("USLACKBOT", self.app.user_id):
            return self.channels.setdefault(f"D{name[1:]}", Channel(f"D{name[1:]}", name, is_im=True))
        for channel in self.channels.values():
            if name in (channel.id, f"#{channel.name}", channel.name):
                return channel
        raise SlackError("channel_not_found")

    def writable(self, name: object) -> Channel:
        """A channel that the app may write to now."""
        channel = self.channel(name)
        if channel.is_archived:
            raise SlackError("is_archived")
        if not channel.is_member:
            raise SlackError("not_in_channel")
        return channel

    def message(self, channel: Channel, ts: object) -> Message:
        """The message of a ts that people can see."""
        for message in channel.messages:
            if message.ts == ts and not message.deleted:
                return message
        raise SlackError("message_not_found")

    def next_ts(self, channel: Channel) -> str:
        """A ts that is new in the channel and grows: microseconds of Unix time as Slack writes them."""
        channel.last_ts_us = max(channel.last_ts_us + 1, int(self.clock() * 1_000_000))
        seconds, microseconds = divmod(channel.last_ts_us, 1_000_000)
        return f"{seconds:010d}.{microseconds:06d}"

    def add(self, channel: Channel, user: str, text: str, blocks: list[Json], **rest: object) -> Message:
        """Put a message where it belongs: the channel, its thread, or (a bad thread_ts) nowhere visible."""
        message = Message(channel.id, self.next_ts(channel), user, [self.version(text, blocks)])
        for name, value in rest.items():
            setattr(message, name, value)
        if message.only_for:
            self.ephemerals.append(message)
        elif message.thread_ts is not None and self._root(channel, message.thread_ts) is None:
            channel.lost.append(message)
        else:
            channel.messages.append(message)
        self.touch()
        return message

    def version(self, text: str, blocks: list[Json]) -> Version:
        """A version that begins now."""
        return Version(text, with_identifiers(blocks, self.random), self.clock())

    def edit(self, message: Message, text: str, blocks: list[Json]) -> None:
        """Show something else from now on; the old version stays known."""
        message.versions.append(self.version(text, blocks))
        message.edited_ts = f"{self.clock():.6f}"
        self.touch()

    def remove(self, message: Message) -> None:
        """Take a message away; a root with replies leaves a tombstone."""
        channel = self.channels.get(message.channel)
        if message.only_for:
            self.ephemerals.remove(message)
        elif channel and message.is_root and self.thread(channel, message.ts):
            message.deleted = True
            message.versions.append(Version("This message was deleted.", [], self.clock()))
        elif channel:
            channel.messages.remove(message)
        self.touch()

    def thread(self, channel: Channel, ts: str) -> list[Message]:
        """The replies below a root, oldest first, without the root."""
        return [item for item in channel.messages if item.thread_ts == ts and item.ts != ts]

    def wire(self, channel: Channel, message: Message, *, metadata: bool = False) -> Json:
        """A message with the counters of its thread, when it is a root that has one."""
        out = wire(message, metadata=metadata)
        replies = [] if message.thread_ts else self.thread(channel, message.ts)
        if replies:
            users = list(dict.fromkeys(reply.user for reply in replies))
            out |= {
                "thread_ts": message.ts,
                "reply_count": len(replies),
                "reply_users": users,
                "reply_users_count": len(users),
                "latest_reply": replies[-1].ts,
            }
        return out

    def wires(self, channel: Channel, messages: Iterable[Message], *, metadata: bool) -> list[Json]:
        """Several messages on the wire."""
        return [self.wire(channel, message, metadata=metadata) for message in messages]

    def seen_only_by(self, user: str) -> list[Json]:
        """The ephemeral messages of one user, oldest first; each says its `channel`."""
        mine = [message for message in self.ephemerals if message.only_for == user]
        return [{**wire(message), "channel": message.channel} for message in mine]

    def _root(self, channel: Channel, ts: object) -> Message | None:
        if not isinstance(ts, str) or not TS.match(ts):
            return None
        return next((item for item in channel.messages if item.ts == ts and not item.thread_ts), None)
