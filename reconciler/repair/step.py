"""Step: one part of a repair, as a value, with its context and its possible results. Pure.

A step looks at the cluster and returns a result; it changes nothing itself. If something has to be done it
returns `Act`, and the executor writes the intent into the journal before it calls it.
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
"""Seconds until the next look at something that takes seconds."""

LATER = 5.0
"""Seconds until the next look at something that takes minutes or is down."""


class ReportsUnavailableError(Exception):
    """The bot gave no usable response; try again later."""


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
    """The reports that the bot holds."""

    def newest(self, node: str) -> HeldReport | None:
        """Return the newest report of `node`, None if there is none; raises ReportsUnavailableError."""
        ...


class RecordSource(Protocol):
    """The repair records in Git, as last read."""

    def judge(self, path: str, now: datetime) -> Admission | RecordUnknown:
        """Return whether the record at `path` may be carried out now."""
        ...

    def stands(self, path: str, now: datetime) -> bool | None:
        """Whether there is a record at `path`; None if that is unknown now."""
        ...

    def owner(self, path: str) -> str:
        """Return the address of the record's first approver, empty if it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class StepContext:
    """Everything that a step may use. `now` is the start of this pass, in UTC.

    A report that is older than `stale_after` proves nothing. `namespace` holds the leases. `kind` is the kind
    of provider in the plan. `clock` returns the current time, for a step that must not act late.
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
    """Facts that a look found, for the journal. None and empty keep the journal's value."""

    drain: DrainFact | None = None
    order: OrderFact | None = None
    heartbeat: str = ""


NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done, as observed in the cluster. The fields after `message` are kept in the journal."""

    message: str
    facts: Facts = NO_FACTS
    before: PreState | None = None
    new_boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Not done yet, or unknown: look again in `after` seconds.

    `message` says what the step waits for. `late` overrides how the repair ends if the step's limit passes.
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
    """Something has to be done: the executor writes the intent and its facts, then calls `do` once."""

    intent: str
    do: Callable[[], Again | NotDone | End]
    facts: Facts = NO_FACTS


StepResult = Done | Again | NotDone | End | Act


@dataclass(frozen=True, slots=True)
class StepWords:
    """The words for a step: `doing` while it runs, `done` afterwards.

    `news` says when the step gets its own message in the thread: `begun`, `done`, or empty for never.
    """

    doing: str
    done: str
    news: str = ""


@dataclass(frozen=True, slots=True)
class Undo:
    """How to release what a step took. `look` returns Done once nothing of it is left.

    With `keep` it stays if the destructive step may have happened and the node is not known to be healthy.
    """

    look: Callable[[Repair, StepContext], Done | Act]
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a repair.

    `limit` is how long it may take, counted from the first look (safety rule 16); after that the repair ends in
    `late`. A `once` step stays done; other steps are looked at in each pass until the destructive step has begun.
    A `renew` step is looked at until the repair ends. A `destructive` step cannot be undone. `undo` releases what
    the step took. A step that returns NotDone must be `once`: its limit covers all its attempts.
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
