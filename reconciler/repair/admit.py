"""Records in Git → Repair objects, and outcomes of the records that are not admitted.

Each record is admitted, refused with an outcome in Git, or named in the log.
"""

from datetime import datetime

import structlog

from reconciler.incidents.admission import Admitted, NotAdmitted, UnreadableRecord
from reconciler.incidents.records import RepairRecord
from reconciler.kube.results import Conflict, Stored, UnavailableError
from reconciler.log import LogOnce
from reconciler.repair import outcome
from reconciler.repair.actions.registry import RefusedPlan, resolve
from reconciler.repair.clients import RepairClients
from reconciler.repair.resource import RepairSpec, name_of
from reconciler.repair.step import RecordSource
from reconciler.source.git_source import Desired
from reconciler.source.recording import AlreadyRecordedError

log = structlog.get_logger()


class RecordAdmitter:
    """Admits the open records in Git. `unreadable` are files that are not valid records, for people to fix."""

    def __init__(self, clients: RepairClients, log_once: LogOnce) -> None:
        self._clients = clients
        self._log_once = log_once
        self.unreadable: tuple[UnreadableRecord, ...] = ()

    def admit(
        self, desired: Desired, records: RecordSource, existing: set[str], now: datetime
    ) -> tuple[bool, tuple[NotAdmitted, ...]]:
        """Create the Repairs of admitted records; return whether there are new ones, and the refused records.

        Records with a Repair in `existing` are skipped: that Repair records its own outcome.
        """
        created, refused, unreadable = False, [], []
        for path in desired.open_records:
            match records.judge(path, now):
                case Admitted(_, record, _) if name_of(record) not in existing:
                    plan = resolve(record.plan)
                    if isinstance(plan, RefusedPlan):
                        refused.append(NotAdmitted(path, record, plan.phase, plan.reason))
                    else:
                        created |= self._create(path, desired.incidents_commit, record)
                case NotAdmitted(_, record, _, _) as judged if name_of(record) not in existing:
                    refused.append(judged)
                case UnreadableRecord(_, faults) as judged:
                    unreadable.append(judged)
                    if self._log_once.is_new(path, str(faults)):
                        log.error("repair record refused", path=path, faults=[str(each) for each in faults])
        self.unreadable = tuple(unreadable)
        return created, tuple(refused)

    def record(self, refused: NotAdmitted, now: datetime) -> None:
        """Record why a record was not carried out; raises RecordUnavailableError."""
        evidence = refused.record.evidence
        said = {"node": evidence.node, "incident": evidence.incident, "repair": name_of(refused.record)}
        if self._log_once.is_new(refused.path, refused.reason):
            log.warning("repair record not admitted", reason=refused.reason, **said)
        try:
            self._clients.recorder.record(outcome.of_refusal(refused, now))
        except AlreadyRecordedError as error:
            log.info("outcome was recorded already", reason=str(error), **said)

    def _create(self, path: str, commit: str, record: RepairRecord) -> bool:
        name = name_of(record)
        spec = RepairSpec(record_path=path, record_commit=commit, record=record)
        body = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        evidence, refused = record.evidence, ""
        try:
            result: Stored | Conflict = self._clients.writer.create_repair(name, body)
        except UnavailableError as error:
            # A record that the API server refuses must not block the others.
            result, refused = Conflict(str(error)), str(error)
        if self._log_once.is_new(f"create {path}", refused) and refused:
            log.warning("repair not created", repair=name, node=evidence.node, reason=refused)
        if isinstance(result, Conflict):
            return False
        log.info("repair admitted", repair=name, node=evidence.node, incident=evidence.incident)
        return True
