"""Check that the approval still holds: before anything changes, and right before the destructive step (safety rule 1).

If something is unknown the repair waits; if something has changed it lapses. Both checks read Git, the API server
and the node's newest report again.
"""

from datetime import timedelta

from reconciler.config.schema import RepairPolicy
from reconciler.incidents.admission import NO_RECORD, Admitted, NotAdmitted, RecordUnknown, UnreadableRecord
from reconciler.incidents.coverage import disturbed, uncovered
from reconciler.incidents.progress import Phase
from reconciler.repair.resource import Repair
from reconciler.repair.step import (
    LATER,
    SOON,
    Again,
    Done,
    End,
    ReportsUnavailableError,
    Step,
    StepContext,
    StepResult,
    StepWords,
)
from reconciler.repair.steps.cordon import was_lifted
from reconciler.repair.steps.drain import NOT_APPROVED, listed
from reconciler.repair.verification import Missing, Void, still_stands


def revalidate(repair: Repair, context: StepContext) -> StepResult:
    """Check everything that the approval names: record, approvers, node, boot, findings, pods."""
    ordered = _ordered(repair, context)
    if ordered is not None:
        return ordered
    node = context.reader.node(repair.node)
    try:
        held = context.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        return Again(str(error), LATER)
    match still_stands(repair.spec.record.evidence, node, held, context.stale_after):
        case Void(reason):
            return End(Phase.LAPSED, reason)
        case Missing(reason):
            return Again(reason, SOON)
    pods = [pod for pod in context.reader.pods(repair.node) if not pod.terminating]
    current = disturbed(pods, context.reader.budgets() if pods else ())
    foreign = uncovered(repair.spec.record.plan.disturbs, current)
    if foreign:
        return End(Phase.LAPSED, NOT_APPROVED + listed(foreign))
    return Done("the approval still fits")


def recheck(repair: Repair, context: StepContext) -> StepResult:
    """Check everything again right before the destructive step.

    If an earlier order took effect late, there is nothing to approve: the machine has booted already.
    """
    node = context.reader.node(repair.node)
    before = repair.status.pre_state
    late = before is not None and node is not None and node.boot_id not in ("", before.boot_id)
    if late and any(each.destructive for each in repair.status.steps):
        return Done("an earlier order has taken effect")
    if node is not None and was_lifted(node, repair):
        return End(Phase.CANCELLED, "somebody made the node schedulable again")
    if any(pod.evictable for pod in context.reader.pods(repair.node)):
        return Again("a pod has started on the node since the drain")
    return revalidate(repair, context)


def _ordered(repair: Repair, context: StepContext) -> Again | End | None:
    match context.records.judge(repair.spec.record_path, context.now):
        case RecordUnknown(reason):
            return Again(reason, LATER)
        case NotAdmitted(_, _, phase, reason):
            return End(phase, reason)
        case UnreadableRecord():
            return End(Phase.FAILED, NO_RECORD)
        case Admitted(_, record, _) if record != repair.spec.record:
            return End(Phase.FAILED, "the record in Git has changed")
    return None


def _while_approved(policy: RepairPolicy) -> timedelta:
    """Return how long to wait for something unknown: the approval lapses by then anyway."""
    return policy.approval_lifetime


REVALIDATE = Step(
    name="revalidate",
    words=StepWords(doing="checking the findings again", done="findings checked again"),
    look=revalidate,
    limit=_while_approved,
    late=Phase.LAPSED,
    once=True,
)

RECHECK = Step(
    name="recheck",
    words=StepWords(doing="checking the approval once more", done="approval checked once more"),
    look=recheck,
    limit=_while_approved,
    late=Phase.LAPSED,
)
