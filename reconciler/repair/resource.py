"""The custom resource Repair: its spec is the record in Git, its status is the step journal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import AwareDatetime, ValidationError, model_validator

from reconciler.incidents.progress import JournalEntry, Phase
from reconciler.incidents.records import RepairRecord
from reconciler.incidents.value import RecordValue, StatusValue
from reconciler.repair.first_format import upgraded


class PreState(StatusValue):
    """The state before the first side effect, to restore or to compare with.

    `machine` identifies the machine in its provider's terms, `gpus` is the number of GPUs that the node must have;
    both are kept here because the node may lose its labels while it restarts. `power` is what the provider saw.
    """

    boot_id: str
    power: str
    unschedulable: bool
    taints: tuple[str, ...] = ()
    machine: str = ""
    gpus: int = 0


class UndoEntry(StatusValue):
    """Something that the repair holds: the step that took it, and when (UTC). The end of the repair releases it."""

    step: str
    taken_at: AwareDatetime


class RepairStatus(StatusValue):
    """Progress of a repair, in the custom resource's status.

    `undo` lists what the repair holds, oldest first. `held_by` is the owner of a held repair. `released` means
    that everything that must not stay is released. `recorded` says where the outcome is in Git, or why it is not
    there; it is empty until then. Times are UTC.
    """

    phase: Phase = Phase.PENDING
    step: str = ""
    message: str = ""
    steps: tuple[JournalEntry, ...] = ()
    undo: tuple[UndoEntry, ...] = ()
    pre_state: PreState | None = None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    new_boot_id: str = ""
    held_by: str = ""
    released: bool = False
    recorded: str = ""

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, raw: Any) -> Any:
        return upgraded(raw)


class RepairSpec(RecordValue):
    """The record in the custom resource, with its path and commit in Git."""

    record_path: str
    record_commit: str
    record: RepairRecord


@dataclass(frozen=True, slots=True)
class Repair:
    """A Repair as read: the record, its status, and the resource version that a write requires."""

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


def name_of(record: RepairRecord) -> str:
    """Return the name of the Repair of a record."""
    return repair_name(record.evidence.node, record.action_id)


def read_repair(raw: Mapping[str, Any]) -> Repair | str:
    """Return the Repair in a raw object, or why it is not a valid one."""
    try:
        spec = RepairSpec.model_validate(raw.get("spec"))
        status = RepairStatus.model_validate(raw.get("status") or {})
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    name = raw["metadata"]["name"]
    if name != name_of(spec.record):
        return "its name is not that of its record"
    return Repair(name, raw["metadata"]["resourceVersion"], spec, status)
