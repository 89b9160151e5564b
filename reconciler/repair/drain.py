"""The step that empties a node by eviction, honouring disruption budgets and naming the one that blocks.

Whether the node is empty is counted anew each time; that evictions were accepted proves nothing.
"""

from collections.abc import Iterable

from reconciler.incidents.records import Phase
from reconciler.kube.connection import UnavailableError
from reconciler.kube.objects import Budget, Pod
from reconciler.kube.write import EvictionBlocked
from reconciler.repair import journal
from reconciler.repair.scene import SOON, Act, Again, Done, End, Look, Repair, Scene
from reconciler.repair.steps import DRAIN
from reconciler.repair.verify import strangers

NAMED = 3
"""Blocked pods that are named in a message; the rest is counted."""


def drain(repair: Repair, scene: Scene) -> Look:
    """Evict every pod that has to go, until none is left or the policy's time is over."""
    left = [pod for pod in scene.reader.pods(repair.node) if pod.evictable]
    if not left:
        return Done("no pod is left")
    new = strangers(left, repair.spec.record.plan)
    if new:
        return End(Phase.LAPSED, f"pods that nobody approved to evict: {', '.join(new[:NAMED])}")
    begun = journal.entry(repair.status, DRAIN)
    limit = scene.config.policy.drain_timeout
    if begun is not None and scene.now - begun.started_at > limit:
        return End(Phase.HELD, f"the drain did not end within {limit}: {repair.status.message}")
    to_evict = [pod for pod in left if not pod.terminating]
    if not to_evict:
        return Again(f"waits for {_pods(len(left))} to stop: {_listed(left)}")
    return Act("evict the pods of the node", lambda: _evict(to_evict, len(left), scene))


def _evict(pods: Iterable[Pod], left: int, scene: Scene) -> Again:
    blocked: list[tuple[Pod, EvictionBlocked]] = []
    unknown: list[str] = []
    for pod in pods:
        try:
            result = scene.writer.evict(pod)
        except UnavailableError as error:
            # One pod that nobody could ask about does not keep the others.
            unknown.append(str(error))
            continue
        if isinstance(result, EvictionBlocked):
            blocked.append((pod, result))
    if blocked:
        budgets = scene.reader.budgets()
        words = "; ".join(_sentence(pod, why, budgets) for pod, why in blocked[:NAMED])
        more = f" and {len(blocked) - NAMED} more" if len(blocked) > NAMED else ""
        return Again(f"{_pods(left)} left: {words}{more}", SOON)
    if unknown:
        return Again(f"{_pods(left)} left: {unknown[0]}", SOON)
    return Again(f"waits for {_pods(left)} to stop", SOON)


def _sentence(pod: Pod, blocked: EvictionBlocked, budgets: Iterable[Budget]) -> str:
    covering = [each.name for each in budgets if each.disruptions_allowed < 1 and each.covers(pod)]
    named = ", ".join(blocked.budgets or covering) or "unknown"
    return f"{pod.namespace}/{pod.name} is blocked by PodDisruptionBudget {named} ({blocked.reason})"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _listed(pods: list[Pod]) -> str:
    names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods[:NAMED])
    return f"{names} and {len(pods) - NAMED} more" if len(pods) > NAMED else names
