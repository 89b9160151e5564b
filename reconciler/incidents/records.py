"""The files of an incident, one model each: the fault, the thread, the decisions, the outcome.

Each value is one file under `incidents/<yyyy>/<mm>/<id>/`, created once and never edited. Field names in the
files are camelCase, as in Kubernetes; unknown fields are refused. Times are UTC.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import AwareDatetime, Field, PlainSerializer, PlainValidator
from pydantic.alias_generators import to_camel, to_snake

from checks.finding import Action, Finding
from reconciler.incidents.plan import Plan
from reconciler.incidents.progress import JournalEntry, Phase
from reconciler.incidents.value import API_VERSION, RecordValue

TS: Final = r"^[0-9]{10}\.[0-9]{6}$"
"""A Slack message's `ts`: text, never a number (Slack accepts a float and never shows the reply)."""


class Cause(StrEnum):
    """The kind of component at fault; a node has at most one open incident of each kind."""

    GPU = "gpu"
    NETWORK = "network"
    STORAGE = "storage"
    HOST = "host"
    AGENT = "agent"
    SLURM = "slurm"


class CloseReason(StrEnum):
    """Why an incident is closed. `recorded`: a person closed it in Git without a known reason."""

    REPAIRED = "repaired"
    CLEARED = "cleared"
    NODE_GONE = "node-gone"
    RESOLVED = "resolved"
    RECORDED = "recorded"


def _read_finding(value: object) -> Finding:
    if isinstance(value, Finding):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("must be a mapping")  # noqa: TRY004 - pydantic reports ValueError alone
    try:
        return msgspec.convert({to_snake(str(key)): each for key, each in value.items()}, Finding)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def _write_finding(finding: Finding) -> dict[str, Any]:
    plain = msgspec.structs.asdict(finding).items()
    return {
        to_camel(key): str(each) if isinstance(each, StrEnum) else each
        for key, each in plain
        if each is not None
    }


RecordedFinding = Annotated[
    Finding, PlainValidator(_read_finding), PlainSerializer(_write_finding, return_type=dict[str, Any])
]
"""A finding as of the opening of the incident, with its fields in camelCase."""


class Decider(RecordValue):
    """A person who decided. `email` is the identity, `slack` the account that was used."""

    name: str
    email: str
    slack: str | None = None


class Evidence(RecordValue):
    """What an approval covers: an incident on a node in one boot, with its findings and its plan.

    `findings` are the keys of the incident's findings. An approval lapses as soon as any of these no
    longer matches the cluster (safety rule 1).
    """

    cluster: str
    incident: str
    node: str
    node_uid: str
    boot_id: str
    findings: tuple[str, ...]
    evidence_digest: str
    plan_digest: str


class IncidentOpened(RecordValue):
    """The first file of an incident (`opened.yaml`).

    `boards` are the serial numbers of the GPUs in question, by PCI address, if known.
    """

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["IncidentOpened"] = "IncidentOpened"
    incident: str
    cluster: str
    node: str
    node_uid: str
    boot_id: str
    cause: Cause
    opened_at: AwareDatetime
    findings: Annotated[tuple[RecordedFinding, ...], Field(min_length=1)]
    boards: dict[str, str] | None = None


class ThreadOpened(RecordValue):
    """The incident's Slack thread (`thread.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Thread"] = "Thread"
    incident: str
    channel: str
    ts: Annotated[str, Field(pattern=TS)]


class Approval(RecordValue):
    """One person's approval (`approval-N.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Approval"] = "Approval"
    decision_id: str
    action: Action
    evidence: Evidence
    approver: Decider
    approved_at: AwareDatetime
    expires_at: AwareDatetime
    via: str


class RepairRecord(RecordValue):
    """The order to repair (`repair-N.yaml`), with the names of its approvals in the same directory."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["RepairRecord"] = "RepairRecord"
    action_id: str
    attempt: int
    action: Action
    evidence: Evidence
    plan: Plan
    approvals: tuple[str, ...]
    approved_at: AwareDatetime
    expires_at: AwareDatetime


class Rejection(RecordValue):
    """One person's refusal of the offered repair (`rejected-N.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Rejected"] = "Rejected"
    decision_id: str
    action: Action
    evidence: Evidence
    person: Decider
    reason: str
    rejected_at: AwareDatetime
    via: str


class RepairOutcome(RecordValue):
    """How a repair ended (`outcome-N.yaml`). `kept` names the steps that have left their marks on the node."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["RepairOutcome"] = "RepairOutcome"
    action_id: str
    attempt: int
    action: Action
    incident: str
    node: str
    phase: Phase
    reason: str
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime
    old_boot_id: str
    new_boot_id: str = ""
    held_by: str = ""
    kept: tuple[str, ...] = ()
    steps: tuple[JournalEntry, ...] = ()


class IncidentClosed(RecordValue):
    """The last file of an incident (`closed.yaml`). `by` names the person who closed it, if any."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Closed"] = "Closed"
    incident: str
    node: str
    why: CloseReason
    closed_at: AwareDatetime
    by: str = ""


IncidentFile = (
    IncidentOpened | ThreadOpened | Approval | RepairRecord | Rejection | RepairOutcome | IncidentClosed
)

FILES: Final[Mapping[str, type[IncidentFile]]] = {
    "opened": IncidentOpened,
    "thread": ThreadOpened,
    "approval": Approval,
    "repair": RepairRecord,
    "rejected": Rejection,
    "outcome": RepairOutcome,
    "closed": IncidentClosed,
}
"""The model of a file, by `paths.kind_of` its name. Other names belong to other programs or a newer version."""
