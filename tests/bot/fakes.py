"""The systems around the bot's loops, in memory: Slack, Git and Kubernetes, with the faults that they have.

Each implements the Protocol that the production code uses (`bot.chat.Chat`, `IncidentLog`, `ClusterState`).
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import yaml

from bot.chat import ChatRefusedError, ChatUnavailableError, ChatUnknownError, MessageMetadata, PostedMessage
from bot.incidents.approve import Account
from bot.incidents.restore import read_records
from bot.loops.incident_log import GitSnapshot
from bot.messages.blocks import Message, validate
from reconciler.config.schema import Config
from reconciler.incidents.paths import CLOSED, ROOT, split_record
from reconciler.incidents.value import RecordValue
from reconciler.kube.objects import Budget, Node, Object, Pod
from reconciler.kube.results import UnavailableError
from reconciler.source.git import RepositoryUnavailableError
from reconciler.source.recording import AlreadyRecordedError, Commit, RecordUnavailableError


@dataclass(frozen=True, slots=True)
class Refused:
    """The call is refused for good with a code of Slack's."""

    code: str


@dataclass(frozen=True, slots=True)
class Limited:
    """The call is not carried out; a later one may be, after some seconds."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class LostBefore:
    """The connection breaks before the call arrives."""


@dataclass(frozen=True, slots=True)
class LostAfter:
    """The call is carried out and its answer is lost."""


@dataclass(frozen=True, slots=True)
class Late:
    """The call waits until the test sets `until`, then goes on as usual."""

    until: asyncio.Event


Fault = Refused | Limited | LostBefore | LostAfter | Late


@dataclass
class Sent:
    """A message in the channel, with every version that it had."""

    ts: str
    thread: str | None
    versions: list[tuple[Message, MessageMetadata]]
    deleted: bool = False

    @property
    def message(self) -> Message:
        return self.versions[-1][0]

    @property
    def metadata(self) -> MessageMetadata:
        return self.versions[-1][1]


@dataclass
class FakeChat:
    """A Slack channel in memory. `faults` are taken in order, one per call of the method."""

    channel: str = "C0INCIDENTS"
    accounts: dict[str, Account] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    private: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    down: bool = False
    calls: list[str] = field(default_factory=list)

    async def post(self, message: Message, metadata: MessageMetadata, thread: str | None = None) -> str:
        assert validate(message) == []
        lost = await self._begin("post")
        if thread is not None:
            self._find(thread)
        ts = f"{1_796_008_365 + len(self.sent)}.000100"
        self.sent.append(Sent(ts, thread, [(message, metadata)]))
        _end(lost)
        return ts

    async def edit(self, channel: str, ts: str, message: Message, metadata: MessageMetadata) -> None:
        assert channel == self.channel
        assert validate(message) == []
        lost = await self._begin("edit")
        self._find(ts).versions.append((message, metadata))
        _end(lost)

    async def roots(self, since: datetime) -> tuple[PostedMessage, ...]:
        await self._begin("roots")
        found = (each for each in reversed(self.sent) if each.thread is None and not each.deleted)
        return tuple(PostedMessage(each.ts, each.metadata) for each in found if _at(each.ts) >= since)

    async def thread(self, channel: str, ts: str) -> tuple[PostedMessage, ...]:
        await self._begin("thread")
        self._find(ts)
        return tuple(
            PostedMessage(each.ts, each.metadata) for each in self.sent if ts in (each.ts, each.thread)
        )

    async def post_ephemeral(self, channel: str, user: str, message: Message) -> None:
        await self._begin("post_ephemeral")
        self.private.append((user, message.text))

    async def account(self, user: str) -> Account | None:
        await self._begin("account")
        return self.accounts.get(user)

    def _find(self, ts: str) -> Sent:
        found = next((each for each in self.sent if each.ts == ts and not each.deleted), None)
        if found is None:
            raise ChatRefusedError("message_not_found")
        return found

    async def _begin(self, method: str) -> bool:
        """Count the call and let its fault happen; True when its answer is to be lost."""
        self.calls.append(method)
        if self.down:
            raise ChatUnavailableError(f"{method}: unreachable", 1.0)
        match self.faults[method].popleft() if self.faults[method] else None:
            case Refused(code):
                raise ChatRefusedError(code)
            case Limited(seconds):
                raise ChatUnavailableError(f"{method}: ratelimited", seconds)
            case LostBefore():
                raise ChatUnknownError(f"{method}: no answer")
            case LostAfter():
                return True
            case Late(until):
                await until.wait()
        return False


def _end(lost: bool) -> None:
    if lost:
        raise ChatUnknownError("no answer")


def _at(ts: str) -> datetime:
    return datetime.fromtimestamp(float(ts), UTC)


@dataclass
class FakeIncidentLog:
    """The incident branch in memory. `writable` and `readable` say whether the Git host answers now."""

    config: Config | None
    files: dict[str, str] = field(default_factory=dict)
    commits: list[Commit] = field(default_factory=list)
    readable: bool = True
    writable: bool = True
    lose_answers: int = 0

    async def read(self) -> GitSnapshot:
        if not self.readable:
            raise RepositoryUnavailableError("the Git host does not answer")
        return await self.last_read()

    async def last_read(self) -> GitSnapshot:
        directories: dict[str, dict[str, bytes]] = defaultdict(dict)
        for path, text in self.files.items():
            place = split_record(path)
            assert place is not None
            directories[place[0]][place[1]] = text.encode()
        closed = {name for name, files in directories.items() if CLOSED in files}
        return GitSnapshot(
            open={_id(name): read_records(name, files) for name, files in directories.items() if name not in closed},
            closed=frozenset(map(_id, closed)),
            config=self.config,
        )  # fmt: skip

    async def record(self, event: Commit) -> str:
        if not self.writable:
            raise RecordUnavailableError("the Git host does not answer")
        if any(each.decision_id == event.decision_id for each in self.commits):
            return "c" * 40
        for path in event.files:
            if path in self.files:
                raise AlreadyRecordedError(path, "c" * 40)
        self.files |= event.files
        self.commits.append(event)
        if self.lose_answers:
            self.lose_answers -= 1
            raise RecordUnavailableError("the answer was lost")
        return "c" * 40

    def write(self, path: str, value: RecordValue) -> None:
        """Record a file as somebody else: the reconciler, or a person by pull request."""
        assert path.startswith(f"{ROOT}/")
        assert path not in self.files
        plain = value.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.files[path] = yaml.safe_dump(plain, sort_keys=False)

    def names(self, incident: str) -> list[str]:
        """Return the names of an incident's files."""
        return sorted(path.rsplit("/", 1)[1] for path in self.files if f"/{incident}/" in path)


def _id(directory: str) -> str:
    return directory.rsplit("/", 1)[1]


@dataclass
class FakeCluster:
    """Kubernetes in memory. `while_listing_pods` happens once, while a list of pods is on its way."""

    nodes_by_name: dict[str, Node] = field(default_factory=dict)
    pods_by_node: dict[str, tuple[Pod, ...]] = field(default_factory=dict)
    all_budgets: tuple[Budget, ...] = ()
    objects: dict[str, Mapping[str, object]] = field(default_factory=dict)
    down: bool = False
    while_listing_pods: Callable[[], None] | None = None

    def nodes(self) -> tuple[Node, ...]:
        self._answer()
        return tuple(self.nodes_by_name.values())

    def node(self, name: str) -> Node | None:
        self._answer()
        return self.nodes_by_name.get(name)

    def pods(self, node: str) -> tuple[Pod, ...]:
        self._answer()
        found, happens = self.pods_by_node.get(node, ()), self.while_listing_pods
        self.while_listing_pods = None
        if happens is not None:
            happens()
        return found

    def budgets(self) -> tuple[Budget, ...]:
        self._answer()
        return self.all_budgets

    def repairs(self) -> tuple[Object, ...]:
        self._answer()
        return tuple(self.objects.values())

    def _answer(self) -> None:
        if self.down:
            raise UnavailableError("the API server does not answer")
