"""Steps that hold a node: its lease, its cordon and taint, and giving all of them back.

Every mark carries the action id. What another action or a person put there stays.
"""

from datetime import timedelta
from functools import partial

from reconciler.incidents.records import Phase
from reconciler.kube.objects import Node
from reconciler.kube.write import CORDONED_BY, TAINT, Conflict, Stored
from reconciler.repair import journal
from reconciler.repair.scene import LATER, SOON, Act, Again, Done, End, Look, Repair, Scene, repair_name
from reconciler.repair.steps import CORDON

RENEW_AFTER = timedelta(seconds=10)
"""Age at which a held lease is renewed; six times shorter than its duration."""


def lease_name(node: str) -> str:
    """Return the name of the lease that serialises repairs of a node."""
    return f"clusterwright-repair-{node}"


def lock(repair: Repair, scene: Scene) -> Look:
    """Hold the node's lease. It never expires into other hands: its holder has to end first."""
    name = lease_name(repair.node)
    lease = scene.reader.lease(scene.namespace, name)
    take = partial(scene.writer.hold_lease, name, lease, repair.action_id, scene.now)
    if lease is not None and lease.holder == repair.action_id:
        if lease.renewed_at is None or scene.now - lease.renewed_at > RENEW_AFTER:
            # Renewing what is ours changes nothing that a crash could leave half done.
            take()
        return Done("holds the lease")
    if lease is not None and lease.holder and _lives(repair, lease.holder, scene):
        return Again(f"waits: action {lease.holder} holds the node", LATER)
    return Act("take the lease", lambda: _written(take()))


def cordon(repair: Repair, scene: Scene) -> Look:
    """Keep new pods away. Somebody who lifts our cordon or our taint before the reset cancels the repair."""
    node = scene.reader.node(repair.node)
    if node is None:
        return End(Phase.LAPSED, "the node is not registered any more")
    if is_held(node, repair.action_id):
        return Done("the node was cordoned already" if CORDONED_BY not in node.annotations else "cordoned")
    if was_lifted(node, repair):
        return End(Phase.CANCELLED, "somebody made the node schedulable again")
    other = _foreign_action(node, repair.action_id)
    if other and _lives(repair, other, scene):
        return Again(f"waits: action {other} has marked the node", LATER)
    return Act("cordon the node", lambda: _written(scene.writer.cordon(node, repair.action_id)))


def uncordon(repair: Repair, scene: Scene) -> Look:
    """Give the node back: take off our taint, and our cordon if it is ours."""
    node = scene.reader.node(repair.node)
    if node is None or not _is_marked(node, repair.action_id):
        return Done("gave the node back")
    return Act("uncordon the node", lambda: _written(scene.writer.uncordon(node, repair.action_id)))


def release(repair: Repair, scene: Scene, *, keep_marks: bool) -> bool:
    """Undo what an ended repair still holds; True once nothing is left. May be called any number of times."""
    if not keep_marks:
        node = scene.reader.node(repair.node)
        if node is not None and _is_marked(node, repair.action_id):
            scene.writer.uncordon(node, repair.action_id)
            return False
    name = lease_name(repair.node)
    lease = scene.reader.lease(scene.namespace, name)
    if lease is not None and lease.holder == repair.action_id:
        return isinstance(scene.writer.release_lease(name, lease), Stored)
    return True


def is_held(node: Node, action_id: str) -> bool:
    """Whether the node is unschedulable and carries the taint of this action."""
    return node.unschedulable and any(each.key == TAINT and each.value == action_id for each in node.taints)


def was_lifted(node: Node, repair: Repair) -> bool:
    """Whether somebody took our hold off the node: it was there, by the journal or by its annotation."""
    ours = node.annotations.get(CORDONED_BY) == repair.action_id and not node.unschedulable
    return ours or (journal.is_done(repair.status, CORDON) and not is_held(node, repair.action_id))


def _is_marked(node: Node, action_id: str) -> bool:
    tainted = any(each.key == TAINT and each.value == action_id for each in node.taints)
    return tainted or node.annotations.get(CORDONED_BY) == action_id


def _foreign_action(node: Node, action_id: str) -> str:
    marks = [each.value for each in node.taints if each.key == TAINT] + [
        node.annotations.get(CORDONED_BY, "")
    ]
    return next((each for each in marks if each and each != action_id), "")


def _lives(repair: Repair, other: str, scene: Scene) -> bool:
    """Whether another action may still act on the node: it exists and has not given back what it held."""
    found = scene.reader.repair(repair_name(repair.node, other))
    entries = ((found or {}).get("status") or {}).get("steps") or ()
    released = any(each.get("name") == journal.RELEASE and each.get("state") == "done" for each in entries)
    return found is not None and not released


def _written(result: Stored | Conflict) -> Again:
    return Again(
        result.reason if isinstance(result, Conflict) else "", 0 if isinstance(result, Stored) else SOON
    )
