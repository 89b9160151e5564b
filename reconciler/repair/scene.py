"""What a step is given and what it may answer: the seam between the steps and the one who walks them.

A step looks at the world and answers; it changes nothing itself. When something has to be done it answers
`Act`, and the walker writes the intent into the journal before it lets it happen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from reconciler.config.schema import Config
from reconciler.incidents.admission import Admission
from reconciler.incidents.records import Phase, PreState, RepairSpec, RepairStatus
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.providers.machine import Provider
from reconciler.repair.reports import NodeReports
from reconciler.source.recording import Recorder

SOON = 1.0
"""Seconds until a step wants to look again at something that takes seconds."""

LATER = 5.0
"""Seconds until a step wants to look again at something that takes minutes or is down."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A Repair as read: the record, its journal, and the version that a write must still find."""

    name: str
    resource_version: str
    spec: RepairSpec
    status: RepairStatus

    @property
    def action_id(self) -> str:
        """Identity of this attempt."""
        return self.spec.record.action_id

    @property
    def node(self) -> str:
        """Name of the node under repair."""
        return self.spec.record.evidence.node


def repair_name(node: str, action_id: str) -> str:
    """Return the name of the Repair of one attempt at one node."""
    return f"{node}-{action_id}"


@dataclass(frozen=True, slots=True)
class Done:
    """The step is done, by the world's word. The fields after `message` are kept in the journal."""

    message: str
    seen: str = ""
    before: PreState | None = None
    new_boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Not done yet, or nothing is known: look again in `after` seconds."""

    message: str
    after: float = SOON
    seen: str = ""


@dataclass(frozen=True, slots=True)
class NotDone:
    """The last attempt certainly had no effect."""

    message: str


@dataclass(frozen=True, slots=True)
class End:
    """The repair ends here."""

    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True)
class Act:
    """Something must be done: `intent` is written first, then `do` is called, once."""

    intent: str
    do: Callable[[], Again | NotDone | End]


Look = Done | Again | NotDone | End | Act


@dataclass(frozen=True, slots=True)
class Unknown:
    """Git could not be read lately: nobody knows whether the order still stands."""

    reason: str


class Orders(Protocol):
    """What Git says about repair records, as last read."""

    def judge(self, path: str, now: datetime) -> Admission | Unknown:
        """Return whether the record at `path` may be carried out now."""
        ...

    def stands(self, path: str, now: datetime) -> bool | None:
        """Whether there is a record at `path`; None when nobody knows now."""
        ...

    def owner(self, path: str) -> str:
        """Return the address of who approved the record, empty when that cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a step may look at and use. `now` is the time at which this pass began, in UTC.

    A report that is older than `stale_after` proves nothing. `namespace` holds the leases. `clock` tells the
    one step that may not come late what time it is by now.
    """

    reader: KubernetesReader
    writer: KubernetesWriter
    reports: NodeReports
    machines: Provider
    recorder: Recorder
    orders: Orders
    config: Config
    namespace: str
    stale_after: timedelta
    now: datetime
    clock: Callable[[], datetime]
