"""Steps that ask whether the order still stands: before anything is touched, and right before the reset.

What is not known waits; what has changed ends the repair as lapsed. Both are asked of Git, the API server and
the node's newest report, never of memory.
"""

from reconciler.incidents.admission import Admitted, NotAdmitted, UnreadableRecord
from reconciler.incidents.records import Phase, PreState
from reconciler.kube.objects import Node
from reconciler.repair import journal
from reconciler.repair.hold import was_lifted
from reconciler.repair.providers.machine import Machine
from reconciler.repair.reports import ReportsUnavailableError
from reconciler.repair.scene import LATER, SOON, Again, Done, End, Look, Repair, Scene, Unknown
from reconciler.repair.verify import Missing, Void, still_stands, strangers

PROVIDER = "redfish"
"""The only way to act on a machine that this version knows."""


def revalidate(repair: Repair, scene: Scene) -> Look:
    """Ask all that the approval names: record, approvers, node, boot, findings, pods."""
    ordered = _ordered(repair, scene)
    if ordered is not None:
        return ordered
    node = scene.reader.node(repair.node)
    try:
        held = scene.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        return Again(f"waits: {error}", LATER)
    match still_stands(repair.spec.record.evidence, node, held, scene.stale_after):
        case Void(reason):
            return End(Phase.LAPSED, reason)
        case Missing(reason):
            return Again(reason, SOON)
    new = strangers(scene.reader.pods(repair.node), repair.spec.record.plan)
    if new:
        return End(Phase.LAPSED, f"pods that nobody approved to evict: {', '.join(new)}")
    return Done("the approval still fits")


def record_pre_state(repair: Repair, scene: Scene) -> Look:
    """Write down the world as it is, and which machine the node is, before anything is touched."""
    node = scene.reader.node(repair.node)
    if node is None:
        return End(Phase.LAPSED, "the node is not registered any more")
    pool = scene.config.pool_of(node.labels)
    if pool is None or pool.redfish is None or repair.spec.record.plan.provider != PROVIDER:
        return End(Phase.FAILED, "the configuration names no BMC for this node")
    system = pool.redfish.system.replace("{node}", node.name)
    machine = scene.machines.observe(system)
    if not isinstance(machine, Machine):
        return Again(f"waits for the BMC: {machine.reason}", LATER)
    return Done("wrote down the state before", before=_pre_state(node, machine, system, pool.gpus_per_node))


def recheck(repair: Repair, scene: Scene) -> Look:
    """Ask everything again right before the reset; an earlier attempt that worked late needs no leave."""
    node = scene.reader.node(repair.node)
    before = repair.status.pre_state
    late = before is not None and node is not None and node.boot_id not in ("", before.boot_id)
    if late and journal.attempts(repair.status) > 0:
        return Done("an earlier reset has worked")
    if node is not None and was_lifted(node, repair):
        return End(Phase.CANCELLED, "somebody made the node schedulable again")
    if any(pod.evictable for pod in scene.reader.pods(repair.node)):
        return Again("a pod has slipped in")
    return revalidate(repair, scene)


def _ordered(repair: Repair, scene: Scene) -> Again | End | None:
    match scene.orders.judge(repair.spec.record_path, scene.now):
        case Unknown(reason):
            return Again(f"waits: {reason}", LATER)
        case NotAdmitted(_, _, phase, reason):
            return End(phase, reason)
        case UnreadableRecord():
            return End(Phase.FAILED, "Git holds no such repair record")
        case Admitted(_, record, _) if record != repair.spec.record:
            return End(Phase.FAILED, "the record in Git is another one")
    return None


def _pre_state(node: Node, machine: Machine, system: str, gpus: int) -> PreState:
    return PreState(
        boot_id=node.boot_id,
        power=machine.power,
        unschedulable=node.unschedulable,
        taints=tuple(f"{each.key}={each.value}:{each.effect}" for each in node.taints),
        system=system,
        gpus=gpus,
    )
