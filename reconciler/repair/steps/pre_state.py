"""Record the state of the node and its machine before anything changes (safety rule 3)."""

from reconciler.incidents.progress import Phase
from reconciler.kube.objects import Node
from reconciler.repair.providers.provider import Machine
from reconciler.repair.resource import PreState, Repair
from reconciler.repair.step import LATER, Again, Done, End, Step, StepContext, StepResult, StepWords


def record_pre_state(repair: Repair, context: StepContext) -> StepResult:
    """Observe the node and its machine, and keep what later steps compare with."""
    node = context.reader.node(repair.node)
    if node is None:
        return End(Phase.LAPSED, "the node is no longer in the cluster")
    pool = context.config.pool_of(node.labels)
    address = context.kind.machine(pool, node.name) if pool else None
    if pool is None or address is None:
        return End(Phase.FAILED, f"the configuration names no {context.kind.name} machine for this node")
    machine = context.provider.observe(address)
    if not isinstance(machine, Machine):
        return Again(machine.reason, LATER)
    return Done(
        "noted the state before the repair", before=_pre_state(node, machine, address, pool.gpus_per_node)
    )


def _pre_state(node: Node, machine: Machine, address: str, gpus: int) -> PreState:
    return PreState(
        boot_id=node.boot_id,
        power=machine.power,
        unschedulable=node.unschedulable,
        taints=tuple(f"{each.key}={each.value}:{each.effect}" for each in node.taints),
        machine=address,
        gpus=gpus,
    )


PRE_STATE = Step(
    name="pre-state",
    words=StepWords(doing="noting the state before the repair", done="state before the repair noted"),
    look=record_pre_state,
    limit=lambda policy: policy.approval_lifetime,
    late=Phase.LAPSED,
    once=True,
)
