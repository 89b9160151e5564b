"""A directory of the incident branch → the incident, as far as Git knows it. Pure.

The state is the fold over the files. The same fold restores an incident after a restart and brings an open one
up to date, so a decision that comes by pull request counts like one that the bot recorded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import yaml

from bot.incidents.incident import Closure, Decision, Incident, IncidentEvent, Offer, transition
from reconciler.incidents.paths import OPENED, THREAD, kind_of, repair_name
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import (
    FILES,
    Approval,
    CloseReason,
    IncidentClosed,
    IncidentFile,
    IncidentOpened,
    Rejection,
    RepairOutcome,
    RepairRecord,
    ThreadOpened,
)


@dataclass(frozen=True, slots=True)
class IncidentRecords:
    """The files of one incident's directory, by name; `faults` names each file that cannot be read, and why."""

    directory: str
    records: Mapping[str, IncidentFile] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    @property
    def opened(self) -> IncidentOpened | None:
        """The first file, None while it is missing or cannot be read."""
        found = self.records.get(OPENED)
        return found if isinstance(found, IncidentOpened) else None

    @property
    def thread(self) -> ThreadOpened | None:
        """Where people talk about it, None while there is no thread."""
        found = self.records.get(THREAD)
        return found if isinstance(found, ThreadOpened) else None


def read_records(directory: str, contents: Mapping[str, bytes]) -> IncidentRecords:
    """Return the records in `contents` (file name → bytes); never raises."""
    records: dict[str, IncidentFile] = {}
    faults: list[str] = []
    for name in sorted(contents):
        kind = FILES.get(kind_of(name))
        if kind is None:
            continue
        try:
            records[name] = kind.model_validate(yaml.safe_load(contents[name]))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            faults.append(f"{directory}/{name}: {' '.join(str(error).split())[:200]}")
    return IncidentRecords(directory, records, tuple(faults))


def restore(files: IncidentRecords) -> Incident | None:
    """Return the incident that the files describe, None while `opened.yaml` is missing."""
    opened = files.opened
    if opened is None:
        return None
    fresh = Incident(
        id=opened.incident,
        cluster=opened.cluster,
        node=opened.node,
        node_uid=opened.node_uid,
        cause=opened.cause,
        opened_boot_id=opened.boot_id,
        boot_id=opened.boot_id,
        opened_at=opened.opened_at,
        offer_from=opened.opened_at,
        findings=opened.findings,
        boards=tuple((opened.boards or {}).items()),
    )
    return catch_up(fresh, files)


def catch_up(incident: Incident, files: IncidentRecords) -> Incident:
    """Return the incident after every record that it does not contain yet, in order of time."""
    news = [name for name in files.records if name not in incident.recorded]
    for name in sorted(news, key=lambda each: _moment(files, each)):
        for event, changes in _events(incident, files, files.records[name]):
            incident = transition(incident, event, **changes) or incident
        incident = replace(incident, recorded=incident.recorded | {name})
    return incident


def _moment(files: IncidentRecords, name: str) -> tuple[datetime, int]:
    """Return when a record counts, and its place among records of the same moment.

    The clocks of two machines may differ, so an outcome never counts before the repair that it ends.
    """
    match files.records[name]:
        case IncidentOpened() as opened:
            return opened.opened_at, 0
        case (Approval() | RepairRecord()) as approved:
            return approved.approved_at, 1
        case Rejection() as rejected:
            return rejected.rejected_at, 2
        case RepairOutcome() as outcome:
            repair = files.records.get(repair_name(outcome.attempt))
            started = repair.approved_at if isinstance(repair, RepairRecord) else outcome.finished_at
            return max(outcome.finished_at, started), 3
        case IncidentClosed() as closed:
            return closed.closed_at, 4
        case _:
            return datetime.max.replace(tzinfo=UTC), 5


def _events(
    incident: Incident, files: IncidentRecords, record: IncidentFile
) -> Iterable[tuple[IncidentEvent, dict[str, Any]]]:
    match record:
        case RepairRecord():
            yield IncidentEvent.APPROVAL_RECORDED, _approved(files, record)
        case Rejection():
            yield IncidentEvent.REJECTION_RECORDED, {"decision": _declined(incident, record)}
        case RepairOutcome():
            yield from _ended(incident, record)
        case IncidentClosed():
            yield IncidentEvent.CLOSE_RECORDED, {"ending": Closure(record.why, record.closed_at, record.by)}
        case _:
            return


def _approved(files: IncidentRecords, record: RepairRecord) -> dict[str, Any]:
    offer = Offer(plan=record.plan, offered_at=record.approved_at, expires_at=record.expires_at)
    found = [files.records.get(name) for name in record.approvals]
    approvals = [each for each in found if isinstance(each, Approval)]
    changes: dict[str, Any] = {"offer": offer, "attempt": record.attempt, "progress": None}
    if approvals:
        first = approvals[0]
        changes["decision"] = Decision(
            attempt=record.attempt,
            approves=True,
            person=first.approver,
            at=first.approved_at,
            expires_at=first.expires_at,
            via=first.via,
            evidence_digest=first.evidence.evidence_digest,
        )
    return changes


def _declined(incident: Incident, record: Rejection) -> Decision:
    return Decision(
        attempt=incident.attempt,
        approves=False,
        person=record.person,
        at=record.rejected_at,
        expires_at=record.rejected_at,
        via=record.via,
        evidence_digest=record.evidence.evidence_digest,
        reason=record.reason,
    )


def _ended(incident: Incident, outcome: RepairOutcome) -> Iterable[tuple[IncidentEvent, dict[str, Any]]]:
    changes: dict[str, Any] = {"outcomes": (*incident.outcomes, outcome)}
    match outcome.phase:
        case Phase.SUCCEEDED:
            yield (
                IncidentEvent.REPAIR_SUCCEEDED,
                changes | {"ending": Closure(CloseReason.REPAIRED, outcome.finished_at)},
            )
        case Phase.HELD:
            yield IncidentEvent.REPAIR_HELD, changes | {"attempt": outcome.attempt + 1}
        case Phase.PENDING | Phase.RUNNING:
            return
        case _:
            again = {"attempt": outcome.attempt + 1, "offer": None, "offer_from": outcome.finished_at}
            yield IncidentEvent.REPAIR_UNDONE, changes | again
