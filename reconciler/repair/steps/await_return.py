"""Wait until the node is back, and until it is verified (safety rule 4).

The API server shows that it is back; a report of its agent from the new boot shows that it is healthy. The step
never waits for NotReady, because a fast boot skips it.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from reconciler.incidents.progress import Phase
from reconciler.kube.objects import Node
from reconciler.kube.results import Conflict
from reconciler.repair import journal
from reconciler.repair.resource import PreState, Repair
from reconciler.repair.step import (
    LATER,
    SOON,
    Act,
    Again,
    Done,
    End,
    ReportsUnavailableError,
    Step,
    StepContext,
    StepResult,
    StepWords,
)
from reconciler.repair.steps.cordon import has_taint
from reconciler.repair.steps.restart import NO_PRE_STATE
from reconciler.repair.verification import not_verified

RETURN = "return"

Proof = Callable[[Node | None, PreState], str | None]
"""Whether an action is complete, by the API server: None, or what is missing, for people to read."""


def await_return(repair: Repair, context: StepContext, proof: Proof) -> StepResult:
    """Wait until the proof holds and the node's heartbeat has changed."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, NO_PRE_STATE)
    node = context.reader.node(repair.node)
    missing = proof(node, before) or _no_heartbeat(repair, context)
    if missing is None:
        return Done("the node is back", new_boot_id=node.boot_id if node else "")
    if node is not None and _registered_again(node, repair):
        return Act("cordon the node, which registered again", lambda: _cordon(node, repair, context))
    return Again(missing)


def verify(repair: Repair, context: StepContext, proof: Proof) -> StepResult:
    """Wait for a report from the new boot with every GPU and no serious finding."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, NO_PRE_STATE)
    back_since = _returned_at(repair, context)
    node = context.reader.node(repair.node)
    missing = proof(node, before)
    try:
        held = context.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        return Again(f"cannot verify the node: {error}", LATER, late=Phase.HELD)
    boot_id = node.boot_id if node else ""
    since = context.now - back_since
    missing = missing or not_verified(held, boot_id, before.gpus, since, context.stale_after)
    if missing is None:
        return Done("verified by a report of the new boot", new_boot_id=boot_id)
    return Again(missing)


def _no_heartbeat(repair: Repair, context: StepContext) -> str | None:
    """Return what is missing if the heartbeat has not changed since the destructive step."""
    seen = next((each.heartbeat for each in reversed(repair.status.steps) if each.destructive), "")
    beat = context.reader.node_heartbeat(repair.node)
    moved = beat is not None and beat.isoformat() != seen
    return None if moved else "the node's heartbeat has not moved since its boot"


def _registered_again(node: Node, repair: Repair) -> bool:
    return node.uid != repair.spec.record.evidence.node_uid and not has_taint(node, repair.action_id)


def _cordon(node: Node, repair: Repair, context: StepContext) -> Again:
    result = context.writer.cordon(node, repair.action_id)
    return Again(result.reason, SOON) if isinstance(result, Conflict) else Again("waits for the node", 0)


def _returned_at(repair: Repair, context: StepContext) -> datetime:
    return journal.finished_at(repair.status, RETURN) or context.now


def return_step(proof: Proof) -> Step:
    """Return the step that waits until `proof` shows that the action is complete."""
    return Step(
        name=RETURN,
        words=StepWords(doing="waiting for the node to come back", done="back up", news="done"),
        look=partial(await_return, proof=proof),
        limit=lambda policy: policy.boot_timeout,
        once=True,
    )


def verify_step(proof: Proof) -> Step:
    """Return the step that verifies the node while `proof` still holds."""
    return Step(
        name="verify",
        words=StepWords(doing="verifying", done="verified", news="done"),
        look=partial(verify, proof=proof),
        limit=lambda policy: policy.verify_timeout,
        late=Phase.FAILED,
        once=True,
    )
