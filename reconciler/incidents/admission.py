"""One repair record in Git → admitted, refused with a reason, or unreadable. Pure.

A record is a claim. It counts only if the files beside it and the current configuration support all of it. The
reconciler judges it again, with fresh files, right before the destructive step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from reconciler.config.document import Problem, documents
from reconciler.config.reader import validation_faults
from reconciler.config.schema import Config
from reconciler.incidents import paths
from reconciler.incidents.digests import action_id
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import Approval, RepairRecord

CLOCK_SKEW = timedelta(minutes=5)
"""How far in the future an approval may be dated: two machines that keep time by NTP differ by less."""

NO_RECORD = "Git holds no such repair record"
"""Why a repair ends when its record is missing from Git or cannot be read."""

RecordModel = TypeVar("RecordModel", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The record may be carried out now. `approvers` are the addresses of those who approved."""

    path: str
    record: RepairRecord
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """The record is readable and must not be carried out. `phase` is how the repair ends."""

    path: str
    record: RepairRecord
    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """The file is not a readable repair record, so a person has to look at it."""

    path: str
    faults: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class RecordUnknown:
    """Git was not read recently, so it is unknown whether the record still stands."""

    reason: str


Admission = Admitted | NotAdmitted | UnreadableRecord


class NotAdmittedError(Exception):
    """Ends one judgement. It does not leave this module."""

    def __init__(self, phase: Phase, reason: str) -> None:
        super().__init__(reason)
        self.phase = phase


def admit(path: str, files: Mapping[str, bytes], config: Config, now: datetime) -> Admission:
    """Judge the record at `path`; `files` are the files of the incident branch, by path."""
    record = parse(path, files.get(path, b""), RepairRecord)
    if not isinstance(record, RepairRecord):
        return UnreadableRecord(path, record)
    judgement = _Judgement(path, record, files, config, now)
    try:
        judgement.still_open()
        judgement.says_who_it_is()
        judgement.plans_what_was_shown()
        approvers = tuple(judgement.approver(name) for name in record.approvals)
        judgement.has_not_lapsed()
    except NotAdmittedError as error:
        return NotAdmitted(path, record, error.phase, str(error))
    if not approvers:
        return NotAdmitted(path, record, Phase.FAILED, "the record names no approval")
    return Admitted(path, record, approvers)


def approvers_of(path: str, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the approvers' addresses of the record at `path`, as far as its approvals can be read."""
    record = parse(path, files.get(path, b""), RepairRecord)
    names = record.approvals if isinstance(record, RepairRecord) else ()
    wheres = [paths.beside(path, name) for name in names]
    found = [parse(where, files[where], Approval) for where in wheres if where in files]
    return tuple(each.approver.email for each in found if isinstance(each, Approval))


def parse(path: str, content: bytes, kind: type[RecordModel]) -> RecordModel | tuple[Problem, ...]:
    """Return the value of one file of an incident, or every problem with it."""
    found, faults = documents(path, content)
    if faults or len(found) != 1:
        return tuple(faults) or (Problem(path, 1, f"must hold one {kind.__name__}, holds {len(found)}"),)
    try:
        return kind.model_validate(found[0].value)
    except ValidationError as error:
        return tuple(validation_faults(found[0], error))


@dataclass(frozen=True, slots=True)
class _Judgement:
    """A record and everything needed to judge it. Each method raises NotAdmittedError."""

    path: str
    record: RepairRecord
    files: Mapping[str, bytes]
    config: Config
    now: datetime

    def still_open(self) -> None:
        if self._beside(paths.CLOSED) in self.files:
            raise NotAdmittedError(Phase.LAPSED, "the incident is closed")
        if paths.outcome_path(self.path) in self.files:
            raise NotAdmittedError(Phase.LAPSED, "an outcome is recorded already")

    def says_who_it_is(self) -> None:
        found = paths.RECORD.fullmatch(self.path)
        record, evidence = self.record, self.record.evidence
        identity = action_id(evidence.cluster, evidence.node_uid, evidence.incident, record.attempt)
        claims = {
            "cluster": (evidence.cluster, self.config.cluster),
            "incident": (evidence.incident, found["incident"] if found else ""),
            "attempt": (str(record.attempt), found["attempt"] if found else ""),
            "actionId": (record.action_id, identity),
        }
        for name, (claimed, true) in claims.items():
            if claimed != true:
                raise NotAdmittedError(Phase.FAILED, f"{name} is {claimed!r} and must be {true!r}")

    def plans_what_was_shown(self) -> None:
        record = self.record
        if record.plan.action is not record.action:
            raise NotAdmittedError(Phase.FAILED, f"the plan is for {record.plan.action}, not {record.action}")
        if record.plan.digest != record.evidence.plan_digest:
            raise NotAdmittedError(Phase.FAILED, "the plan differs from the one that was approved")

    def approver(self, name: str) -> str:
        where = self._beside(name)
        if paths.APPROVAL.fullmatch(name) is None or where not in self.files:
            raise NotAdmittedError(Phase.FAILED, f"{name} is named as an approval and is not there")
        approval = parse(where, self.files[where], Approval)
        if not isinstance(approval, Approval):
            raise NotAdmittedError(Phase.FAILED, f"an approval cannot be read: {approval[0]}")
        if approval.evidence != self.record.evidence or approval.action is not self.record.action:
            raise NotAdmittedError(Phase.FAILED, f"{name} approves something else than the record orders")
        email = approval.approver.email
        if self.config.approver(email) is None:
            raise NotAdmittedError(Phase.LAPSED, f"{email} is not an approver")
        if approval.approved_at > self.now + CLOCK_SKEW:
            raise NotAdmittedError(Phase.FAILED, f"{name} is dated in the future")
        lifetime = self.config.policy.approval_lifetime
        self._lapses(min(approval.expires_at, approval.approved_at + lifetime))
        return email

    def has_not_lapsed(self) -> None:
        self._lapses(self.record.expires_at)

    def _lapses(self, at: datetime) -> None:
        if at <= self.now:
            raise NotAdmittedError(Phase.LAPSED, f"the approval lapsed at {at:%Y-%m-%d %H:%M:%S %Z}")

    def _beside(self, name: str) -> str:
        return paths.beside(self.path, name)
