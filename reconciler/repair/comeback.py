"""Steps after the reset: the node is back, and the node is well.

That it is back says the API server, that it is well says a report of its agent from the new boot. Never wait
to see it gone: a fast boot skips that.
"""

from datetime import datetime

from reconciler.incidents.records import Phase
from reconciler.kube.objects import Node
from reconciler.kube.write import TAINT, Conflict
from reconciler.repair import journal
from reconciler.repair.reports import ReportsUnavailableError
from reconciler.repair.scene import LATER, SOON, Act, Again, Done, End, Look, Repair, Scene
from reconciler.repair.steps import RESET, RETURN
from reconciler.repair.verify import not_back, not_verified


def come_back(repair: Repair, scene: Scene) -> Look:
    """Wait until the node is ready in a new boot, its heartbeat moves, and it offers its whole inventory."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, "the journal lacks the state before the repair")
    node = scene.reader.node(repair.node)
    missing = not_back(node, before.boot_id, before.gpus) or _no_pulse(repair, scene)
    if missing is None:
        return Done("the node is back", new_boot_id=node.boot_id if node else "")
    if node is not None and _registered_anew(node, repair):
        return Act("cordon the node, which was registered anew", lambda: _cordon(node, repair, scene))
    if scene.now - _finished(repair, RESET, scene) > scene.config.policy.boot_timeout:
        return End(Phase.HELD, f"the node did not come back: {missing}")
    return Again(f"waits: {missing}")


def confirm(repair: Repair, scene: Scene) -> Look:
    """Wait for a report of the new boot that shows every GPU and nothing serious."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, "the journal lacks the state before the repair")
    back_since = _finished(repair, RETURN, scene)
    over = scene.now - back_since > scene.config.policy.verify_timeout
    node = scene.reader.node(repair.node)
    missing = not_back(node, before.boot_id, before.gpus)
    try:
        held = scene.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        text = f"cannot verify the node: {error}"
        return End(Phase.HELD, text) if over else Again(f"waits: {text}", LATER)
    boot_id = node.boot_id if node else ""
    missing = missing or not_verified(held, boot_id, before.gpus, scene.now - back_since, scene.stale_after)
    if missing is None:
        return Done("verified by a report of the new boot", new_boot_id=boot_id)
    if over:
        return End(Phase.FAILED, f"verification failed: {missing}")
    return Again(f"waits: {missing}")


def _no_pulse(repair: Repair, scene: Scene) -> str | None:
    entry = journal.entry(repair.status, RESET)
    beat = scene.reader.node_heartbeat(repair.node)
    moved = beat is not None and (entry is None or beat.isoformat() != entry.seen)
    return None if moved else "the node's heartbeat has not moved since its boot"


def _registered_anew(node: Node, repair: Repair) -> bool:
    marked = any(each.key == TAINT and each.value == repair.action_id for each in node.taints)
    return node.uid != repair.spec.record.evidence.node_uid and not marked


def _cordon(node: Node, repair: Repair, scene: Scene) -> Again:
    result = scene.writer.cordon(node, repair.action_id)
    return Again(result.reason, SOON) if isinstance(result, Conflict) else Again("waits for the node", 0)


def _finished(repair: Repair, step: str, scene: Scene) -> datetime:
    entry = journal.entry(repair.status, step)
    return (entry.finished_at if entry else None) or scene.now
