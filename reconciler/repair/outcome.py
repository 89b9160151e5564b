"""How a repair ended → the commit that records it. Pure."""

from datetime import datetime

import yaml

from reconciler.incidents import paths
from reconciler.incidents.admission import NotAdmitted
from reconciler.incidents.records import RepairOutcome, RepairRecord
from reconciler.repair.resource import RepairStatus
from reconciler.source.recording import Commit


def of_repair(path: str, record: RepairRecord, status: RepairStatus) -> Commit:
    """Return the commit that records how the repair of the record at `path` ended."""
    evidence = record.evidence
    outcome = RepairOutcome(
        action_id=record.action_id,
        attempt=record.attempt,
        action=record.action,
        incident=evidence.incident,
        node=evidence.node,
        phase=status.phase,
        reason=status.message,
        started_at=status.started_at,
        finished_at=status.finished_at or record.expires_at,
        old_boot_id=evidence.boot_id,
        new_boot_id=status.new_boot_id,
        held_by=status.held_by,
        kept=tuple(each.step for each in status.undo),
        steps=status.steps,
    )
    return _event(path, outcome)


def of_refusal(refused: NotAdmitted, now: datetime) -> Commit:
    """Return the commit that records why a record was refused."""
    record = refused.record
    outcome = RepairOutcome(
        action_id=record.action_id,
        attempt=record.attempt,
        action=record.action,
        incident=record.evidence.incident,
        node=record.evidence.node,
        phase=refused.phase,
        reason=refused.reason,
        finished_at=now,
        old_boot_id=record.evidence.boot_id,
    )
    return _event(refused.path, outcome)


def _event(path: str, outcome: RepairOutcome) -> Commit:
    content = outcome.model_dump(mode="json", by_alias=True, exclude_none=True)
    return Commit(
        files={paths.outcome_path(path): yaml.safe_dump(content, sort_keys=False, allow_unicode=True)},
        subject=f"{outcome.action.capitalize()} of {outcome.node}: {outcome.phase.lower()}",
        body=outcome.reason,
        decision_id=f"{outcome.action_id}-outcome",
        trailers=(
            ("Incident", outcome.incident),
            ("Node", outcome.node),
            ("Action", outcome.action.value),
            ("Outcome", outcome.phase.value),
        ),
    )
