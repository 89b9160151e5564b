"""What Git says about a repair: the plan people saw, their approval, the record that starts it, its outcome.

Each value is one file under `incidents/<yyyy>/<mm>/<id>/`, created once and never edited. Field names in the
files are camelCase, as in Kubernetes; unknown fields are refused. Times are UTC.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from checks.finding import Action, Finding, Severity

API_VERSION: Final = "clusterwright.dev/v1alpha1"


class RecordValue(BaseModel):
    """A frozen value that refuses unknown fields and is written in camelCase."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


def digest(value: object) -> str:
    """Return the first 16 hex digits of the SHA-256 of `value` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def action_id(cluster: str, node_uid: str, incident: str, attempt: int) -> str:
    """Identity of one attempt at one repair; every external write carries it (DESIGN section 4, rule 2)."""
    return digest([cluster, node_uid, incident, attempt])[:12]


class PlannedPod(RecordValue):
    """A pod that the repair will evict, and what makes that risky (`bare`, `emptyDir`, `pdb:NAME`)."""

    namespace: str
    name: str
    controller: str | None = None
    gpus: int = 0
    risks: tuple[str, ...] = ()


class Plan(RecordValue):
    """What a repair will do, in order, and whom it disturbs: shown to people, then run as shown."""

    action: Action
    provider: str
    steps: tuple[str, ...]
    disturbs: tuple[PlannedPod, ...] = ()
    keeps_local_data: bool

    @property
    def digest(self) -> str:
        """Changes with anything an approver was shown."""
        return digest(self.model_dump(mode="json", by_alias=True))


class Decider(RecordValue):
    """A person. `email` is the identity; `slack` is the account the decision came from."""

    name: str
    email: str
    slack: str | None = None


class Evidence(RecordValue):
    """What an approval is about: this incident, on this node, in this boot, for these findings and this plan.

    `findings` are the keys of the incident's findings. An approval is void as soon as any of these differs
    from the world (DESIGN section 4, rule 1).
    """

    cluster: str
    incident: str
    node: str
    node_uid: str
    boot_id: str
    findings: tuple[str, ...]
    evidence_digest: str
    plan_digest: str


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
    """The order to repair (`repair-N.yaml`), naming the approvals beside it that it rests on."""

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


class Phase(StrEnum):
    """Where a repair stands. All but the first two are final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    LAPSED = "Lapsed"
    HELD = "Held"

    @property
    def final(self) -> bool:
        """Whether nothing more will be done under this action id."""
        return self not in (Phase.PENDING, Phase.RUNNING)


class StepState(StrEnum):
    """A step's place in the journal: what we were about to do, what we saw done, or certainly not done."""

    INTENT = "intent"
    DONE = "done"
    NOT_DONE = "not-done"


class JournalEntry(RecordValue):
    """One line of the journal. `seen` is the node's heartbeat as last looked at, to see whether it moved."""

    name: str
    state: StepState
    started_at: datetime
    finished_at: datetime | None = None
    message: str = ""
    seen: str = ""


class PreState(RecordValue):
    """The world before the first side effect, to be restored or compared with.

    `system` is the machine in its provider's terms and `gpus` the number of GPUs that make the node whole;
    both are kept here because the node may lose its labels while it is away.
    """

    boot_id: str
    power: str
    unschedulable: bool
    taints: tuple[str, ...] = ()
    system: str = ""
    gpus: int = 0


class RepairStatus(RecordValue):
    """Progress of a repair, in the custom resource's status. `held_by` names who owns a held repair."""

    phase: Phase = Phase.PENDING
    step: str = ""
    message: str = ""
    steps: tuple[JournalEntry, ...] = ()
    pre_state: PreState | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    new_boot_id: str = ""
    held_by: str = ""


class RepairSpec(RecordValue):
    """The record, as the custom resource carries it, with where in Git it stands."""

    record_path: str
    record_commit: str
    record: RepairRecord


class RepairOutcome(RecordValue):
    """How a repair ended (`outcome-N.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["RepairOutcome"] = "RepairOutcome"
    action_id: str
    attempt: int
    action: Action
    incident: str
    node: str
    phase: Phase
    reason: str
    started_at: datetime | None = None
    finished_at: datetime
    old_boot_id: str
    new_boot_id: str = ""
    held_by: str = ""
    steps: tuple[JournalEntry, ...] = ()


def opens_incident(finding: Finding) -> bool:
    """Whether a finding is worth a person's attention: critical, not understood, or a warning to act on."""
    match finding.severity:
        case Severity.CRITICAL | Severity.UNKNOWN:
            return True
        case Severity.WARNING:
            return finding.action is not Action.NONE
        case _:
            return False


def evidence_digest(boot_id: str, findings: Iterable[Finding]) -> str:
    """Return what an approval is bound to: these faults in this boot, however often they were counted."""
    faults = sorted((finding.key, finding.severity.value) for finding in findings)
    return digest([boot_id, faults])
