"""Drain the node by eviction, honouring PodDisruptionBudgets and naming those that block (safety rule 8).

Each pass counts the pods again; accepted evictions do not prove that the node is empty.
"""

from collections.abc import Iterable

from reconciler.incidents.coverage import disturbed, uncovered
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.progress import BlockedPod, DrainFact, Phase
from reconciler.kube.objects import Budget, Pod
from reconciler.kube.results import EvictionBlocked, UnavailableError
from reconciler.repair.resource import Repair
from reconciler.repair.step import (
    SOON,
    Act,
    Again,
    Done,
    End,
    Facts,
    Step,
    StepContext,
    StepResult,
    StepWords,
)

NAMED = 3
"""Pods that a message names; it counts the others."""

NOT_APPROVED = "pods that nobody approved to evict: "
"""Start of the reason if other pods run on the node than the plan lists."""


def drain(repair: Repair, context: StepContext) -> StepResult:
    """Evict pods until none is left that has to go."""
    left = [pod for pod in context.reader.pods(repair.node) if pod.evictable]
    if not left:
        return Done("no pod is left", Facts(DrainFact(pods_left=0)))
    to_evict = [pod for pod in left if not pod.terminating]
    # Budgets change with every eviction, ours included; the API server checks them at each one.
    foreign = uncovered(repair.spec.record.plan.disturbs, disturbed(to_evict, ()))
    if foreign:
        return End(Phase.LAPSED, NOT_APPROVED + listed(foreign))
    if not to_evict:
        text = f"waits for {_count(len(left))} to stop: {listed(left)}"
        return Again(text, facts=Facts(DrainFact(pods_left=len(left))))
    return Act("evict the pods of the node", lambda: _evict(to_evict, len(left), context))


def _evict(pods: Iterable[Pod], left: int, context: StepContext) -> Again:
    blocked: list[tuple[Pod, EvictionBlocked]] = []
    unknown: list[str] = []
    for pod in pods:
        try:
            result = context.writer.evict(pod)
        except UnavailableError as error:
            # One failed request must not block the other pods.
            unknown.append(str(error))
            continue
        if isinstance(result, EvictionBlocked):
            blocked.append((pod, result))
    if blocked:
        budgets = context.reader.budgets()
        fact = DrainFact(pods_left=left, blocked=tuple(_blocked(pod, why, budgets) for pod, why in blocked))
        return Again(f"{_count(left)} left: {_blocked_text(fact.blocked)}", SOON, Facts(fact))
    text = f"{_count(left)} left: {unknown[0]}" if unknown else f"waits for {_count(left)} to stop"
    return Again(text, SOON, Facts(DrainFact(pods_left=left)))


def _blocked(pod: Pod, why: EvictionBlocked, budgets: Iterable[Budget]) -> BlockedPod:
    covering = tuple(each.name for each in budgets if each.disruptions_allowed < 1 and each.covers(pod))
    return BlockedPod(
        namespace=pod.namespace, name=pod.name, budgets=why.budgets or covering, reason=why.reason
    )


def _blocked_text(blocked: tuple[BlockedPod, ...]) -> str:
    words = "; ".join(
        f"{pod.namespace}/{pod.name} is blocked by PodDisruptionBudget "
        f"{', '.join(pod.budgets) or 'unknown'} ({pod.reason})"
        for pod in blocked[:NAMED]
    )
    return f"{words} and {len(blocked) - NAMED} more" if len(blocked) > NAMED else words


def _count(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def listed(pods: Iterable[Pod | PlannedPod]) -> str:
    """Return the names of the first pods, and the number of others."""
    every = [f"{pod.namespace}/{pod.name}" for pod in pods]
    names = ", ".join(every[:NAMED])
    return f"{names} and {len(every) - NAMED} more" if len(every) > NAMED else names


DRAIN = Step(
    name="drain",
    words=StepWords(doing="draining", done="drained", news="done"),
    look=drain,
    limit=lambda policy: policy.drain_timeout,
)
