"""Which steps an action takes, in order. Pure: the table, and the plan that people are shown.

The executor walks the same names, so what was approved is what runs.
"""

from collections.abc import Iterable

from checks.finding import Action
from reconciler.incidents.records import Plan, PlannedPod
from reconciler.kube.objects import Budget, Pod

LOCK = "lock"
REVALIDATE = "revalidate"
PRESTATE = "pre-state"
CORDON = "cordon"
DRAIN = "drain"
RECHECK = "recheck"
RESET = "reset"
RETURN = "return"
VERIFY = "verify"
UNCORDON = "uncordon"

STEPS: dict[Action, tuple[str, ...]] = {
    Action.REBOOT: (LOCK, REVALIDATE, PRESTATE, CORDON, DRAIN, RECHECK, RESET, RETURN, VERIFY, UNCORDON),
}
"""Actions that this version can carry out. What is not in the table cannot be approved."""

KEEPS_LOCAL_DATA = frozenset({Action.RESET_GPU, Action.REBOOT})


def plan(action: Action, provider: str, disturbs: tuple[PlannedPod, ...]) -> Plan:
    """Return the plan of `action`; raises KeyError for an action that is not in `STEPS`."""
    ordered = tuple(sorted(disturbs, key=lambda pod: (pod.namespace, pod.name)))
    return Plan(
        action=action,
        provider=provider,
        steps=STEPS[action],
        disturbs=ordered,
        keeps_local_data=action in KEEPS_LOCAL_DATA,
    )


def disturbs(pods: Iterable[Pod], budgets: Iterable[Budget]) -> tuple[PlannedPod, ...]:
    """Return the pods that draining their node evicts, with what makes each eviction risky."""
    every_budget = tuple(budgets)
    return tuple(_planned(pod, every_budget) for pod in pods if pod.evictable)


def _planned(pod: Pod, budgets: tuple[Budget, ...]) -> PlannedPod:
    risks = [
        *(["bare"] if pod.controller is None else []),
        *(["emptyDir"] if pod.empty_dir else []),
        *(f"pdb:{each.name}" for each in budgets if each.disruptions_allowed < 1 and each.covers(pod)),
    ]
    return PlannedPod(
        namespace=pod.namespace, name=pod.name, controller=pod.controller, gpus=pod.gpus, risks=tuple(risks)
    )
