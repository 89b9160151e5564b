"""Which pods a drain evicts, and whether an approved plan covers them (safety rule 15). Pure."""

from collections.abc import Iterable

from reconciler.incidents.plan import PlannedPod
from reconciler.kube.objects import Budget, Pod


def disturbed(pods: Iterable[Pod], budgets: Iterable[Budget]) -> tuple[PlannedPod, ...]:
    """Return the pods that draining their node evicts, with the risks of each eviction."""
    every_budget = tuple(budgets)
    return tuple(_planned(pod, every_budget) for pod in pods if pod.evictable)


def uncovered(shown: Iterable[PlannedPod], current: Iterable[PlannedPod]) -> tuple[PlannedPod, ...]:
    """Return the pods of `current` that an approval of `shown` does not cover.

    A pod is covered if the same pod, by UID, was shown with at least as many GPUs and with every risk that it
    has now (safety rule 15). A pod that was shown without a UID covers nothing.
    """
    known = {pod.uid: pod for pod in shown if pod.uid}
    return tuple(pod for pod in current if not _covered(known.get(pod.uid), pod))


def _covered(shown: PlannedPod | None, pod: PlannedPod) -> bool:
    return shown is not None and set(pod.risks) <= set(shown.risks) and pod.gpus <= shown.gpus


def _planned(pod: Pod, budgets: tuple[Budget, ...]) -> PlannedPod:
    risks = [
        *(["bare"] if pod.controller is None else []),
        *(["emptyDir"] if pod.empty_dir else []),
        *(f"pdb:{each.name}" for each in budgets if each.disruptions_allowed < 1 and each.covers(pod)),
    ]
    return PlannedPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        controller=pod.controller,
        gpus=pod.gpus,
        risks=tuple(risks),
    )
