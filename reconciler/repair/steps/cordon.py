"""Cordon and taint the node, and undo that. Marks of another action or a person stay (safety rule 5).

Every mark carries the action id.
"""

from datetime import timedelta

from reconciler.incidents.progress import Phase
from reconciler.kube.objects import Node
from reconciler.kube.results import CORDONED_BY, TAINT
from reconciler.repair import journal
from reconciler.repair.resource import Repair
from reconciler.repair.step import (
    LATER,
    Act,
    Again,
    Done,
    End,
    Step,
    StepContext,
    StepResult,
    StepWords,
    Undo,
)
from reconciler.repair.steps.lease import is_active, stored

NAME = "cordon"


def cordon(repair: Repair, context: StepContext) -> StepResult:
    """Keep new pods away. Whoever removes our cordon or taint before the repair acts cancels the repair."""
    node = context.reader.node(repair.node)
    if node is None:
        return End(Phase.LAPSED, "the node is no longer in the cluster")
    if is_held(node, repair.action_id):
        return Done("the node was cordoned already" if CORDONED_BY not in node.annotations else "cordoned")
    if was_lifted(node, repair):
        return End(Phase.CANCELLED, "somebody made the node schedulable again")
    other = _foreign_action(node, repair.action_id)
    if other and is_active(repair, other, context):
        return Again(f"action {other} has marked the node", LATER)
    return Act("cordon the node", lambda: stored(context.writer.cordon(node, repair.action_id)))


def uncordon(repair: Repair, context: StepContext) -> Done | Act:
    """Remove our taint, and the cordon if it is ours."""
    node = context.reader.node(repair.node)
    if node is None or not _is_marked(node, repair.action_id):
        return Done("gave the node back")
    return Act("uncordon the node", lambda: stored(context.writer.uncordon(node, repair.action_id)))


def is_held(node: Node, action_id: str) -> bool:
    """Whether the node is unschedulable and carries the taint of this action."""
    return node.unschedulable and has_taint(node, action_id)


def has_taint(node: Node, action_id: str) -> bool:
    """Whether the node carries the taint of this action."""
    return any(each.key == TAINT and each.value == action_id for each in node.taints)


def was_lifted(node: Node, repair: Repair) -> bool:
    """Whether somebody removed our cordon, which was there by the journal or by its annotation."""
    ours = node.annotations.get(CORDONED_BY) == repair.action_id and not node.unschedulable
    return ours or (journal.is_done(repair.status, NAME) and not is_held(node, repair.action_id))


def _is_marked(node: Node, action_id: str) -> bool:
    return has_taint(node, action_id) or node.annotations.get(CORDONED_BY) == action_id


def _foreign_action(node: Node, action_id: str) -> str:
    marks = [each.value for each in node.taints if each.key == TAINT] + [
        node.annotations.get(CORDONED_BY, "")
    ]
    return next((each for each in marks if each and each != action_id), "")


CORDON = Step(
    name=NAME,
    words=StepWords(doing="cordoning", done="cordoned", news="done"),
    look=cordon,
    limit=lambda policy: policy.approval_lifetime,
    late=Phase.LAPSED,
    undo=Undo(uncordon, keep=True),
)

UNCORDON = Step(
    name="uncordon",
    words=StepWords(doing="uncordoning", done="uncordoned"),
    look=uncordon,
    limit=lambda _policy: timedelta(hours=1),
)
"""It is one write; an hour allows for an outage of the API server."""
