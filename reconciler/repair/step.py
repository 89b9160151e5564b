"""Step: one thing that a repair does, as a value; what it is given, and what it may answer. Pure.

A step looks at the world and answers; it changes nothing itself. When something has to be done it answers
`Act`, and the executor writes the intent into the journal before it lets it happen.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from checks.report import HeldReport
from reconciler.config.schema import Config, RepairPolicy
from reconciler.incidents.admission import Admission, RecordUnknown
from reconciler.incidents.progress import DrainFact, OrderFact, Phase
from reconciler.kube.objects import Budget, Lease, Node, Object, Pod
from reconciler.kube.results import Conflict, Evicted, EvictionBlocked, PodGone, Stored
from reconciler.repair.providers.provider import Provider, ProviderKind
from reconciler.repair.resource import PreState, Repair

SOON = 1.0
"""Seconds until a step wants to look again at something that takes seconds."""

LATER = 5.0
"""Seconds until a step wants to look again at something that takes minutes or is down."""


class ReportsUnavailableError(Exception):
    """The bot did not answer, or not usefully; try again later."""


class ClusterReader(Protocol):
    """What a step may read from Kubernetes. Every method raises UnavailableError."""

    def node(self, name: str) -> Node | None: ...  # noqa: D102 - see reconciler.kube.read
    def pods(self, node: str) -> tuple[Pod, ...]: ...  # noqa: D102
    def budgets(self) -> tuple[Budget, ...]: ...  # noqa: D102
    def lease(self, namespace: str, name: str) -> Lease | None: ...  # noqa: D102
    def node_heartbeat(self, name: str) -> datetime | None: ...  # noqa: D102
    def repair(self, name: str) -> Object | None: ...  # noqa: D102


class ClusterWriter(Protocol):
    """What a step may change in Kubernetes. Every method raises UnavailableError."""

    def cordon(self, node: Node, action_id: str) -> Stored | Conflict: ...  # noqa: D102 - see reconciler.kube.write
    def uncordon(self, node: Node, action_id: str) -> Stored | Conflict: ...  # noqa: D102
    def evict(self, pod: Pod) -> Evicted | EvictionBlocked | PodGone: ...  # noqa: D102
    def hold_lease(self, name: str, lease: Lease | None, holder: str, now: datetime) -> Stored | Conflict: ...  # noqa: D102
    def release_lease(self, name: str, lease: Lease) -> Stored | Conflict: ...  # noqa: D102
    def write_status(self, name: str, resource_version: str, status: dict[str, Any]) -> Stored | Conflict: ...  # noqa: D102


class ReportReader(Protocol):
    """The bot, asked for what it holds of a node."""

    def newest(self, node: str) -> HeldReport | None:
        """Return the newest report of `node`, None when there is none; raises ReportsUnavailableError."""
        ...


class RecordSource(Protocol):
    """What Git says about repair records, as last read."""

    def judge(self, path: str, now: datetime) -> Admission | RecordUnknown:
        """Return whether the record at `path` may be carried out now."""
        ...

    def stands(self, path: str, now: datetime) -> bool | None:
        """Whether there is a record at `path`; None when nobody knows now."""
        ...

    def owner(self, path: str) -> str:
        """Return the address of who approved the record, empty when that cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """Everything that a step may look at and use. `now` is the time at which this pass began, in UTC.

    A report that is older than `stale_after` proves nothing. `namespace` holds the leases. `kind` is the kind
    of provider that the plan names. `clock` tells a step that must not act late what time it is by now.
    """

    reader: ClusterReader
    writer: ClusterWriter
    reports: ReportReader
    records: RecordSource
    kind: ProviderKind
    provider: Provider
    config: Config
    namespace: str
    stale_after: timedelta
    now: datetime
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a look found out, for the journal. None and empty leave what stands there."""

    drain: DrainFact | None = None
    order: OrderFact | None = None
    heartbeat: str = ""


NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done, by the world's word. The fields after `message` are kept in the journal."""

    message: str
    facts: Facts = NO_FACTS
    before: PreState | None = None
    new_boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Not done yet, or nothing is known: look again in `after` seconds.

    `message` says what it waits for. `late` overrides how the repair ends if the step's limit passes meanwhile.
    """

    message: str
    after: float = SOON
    facts: Facts = NO_FACTS
    late: Phase | None = None


@dataclass(frozen=True, slots=True)
class NotDone:
    """The last attempt certainly had no effect."""

    message: str
    facts: Facts = NO_FACTS


@dataclass(frozen=True, slots=True)
class End:
    """The repair ends here."""

    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True)
class Act:
    """Something must be done: the intent and its facts are written first, then `do` is called, once."""

    intent: str
    do: Callable[[], Again | NotDone | End]
    facts: Facts = NO_FACTS


StepResult = Done | Again | NotDone | End | Act


@dataclass(frozen=True, slots=True)
class StepWords:
    """How people read about a step: `doing` while it runs, `done` afterwards.

    `news` says when the step is worth a message of its own in the thread: once it has begun, once it is done,
    or never.
    """

    doing: str
    done: str
    news: str = ""


@dataclass(frozen=True, slots=True)
class Undo:
    """How to give back what a step took. `look` answers Done once nothing of it is left.

    With `keep` it stays when the destructive step may have happened and the node is not known to be well.
    """

    look: Callable[[Repair, StepContext], Done | Act]
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a repair does.

    `limit` is how long it may take, counted from when it was first looked at; past it the repair ends in
    `late`. `once` stays done once it was seen done; other steps are looked at in each pass until the
    destructive step has begun. `renew` is looked at until the repair ends. `destructive` cannot be taken back.
    `undo` gives back what it took. A step that answers NotDone is `once`: its limit covers all its attempts.
    """

    name: str
    words: StepWords
    look: Callable[[Repair, StepContext], StepResult]
    limit: Callable[[RepairPolicy], timedelta]
    late: Phase = Phase.HELD
    once: bool = False
    renew: bool = False
    destructive: bool = False
    undo: Undo | None = None


def names(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the names of steps, as a plan lists them."""
    return tuple(each.name for each in steps)
