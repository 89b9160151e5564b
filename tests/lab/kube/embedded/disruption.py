"""The disruption controller: keeps the status of every PodDisruptionBudget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.selectors import label_selector_match
from tests.lab.kube.embedded.state import State, stamp

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.storage import Event

BUDGETS = "poddisruptionbudgets.policy"
SCALED = {"ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps"}


def ready(pod: Obj) -> bool:
    """The Ready condition, which is what a budget calls healthy."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def budgets_of(state: State, pod: Obj) -> list[Obj]:
    """The budgets whose selector takes a pod."""
    labels = pod["metadata"].get("labels") or {}
    budgets = state.store.all(BUDGETS, pod["metadata"]["namespace"])
    return [budget for budget in budgets if label_selector_match(budget["spec"].get("selector"))(labels)]


def follow(state: State, event: Event) -> None:
    """Listener of the store: recompute the budgets a change can touch, unless the controllers are held."""
    if state.held:
        return
    if event.table == BUDGETS and event.type != "DELETED":
        _recompute(state, event.object)
    elif event.table == "pods":
        touched = [pod for pod in (event.object, event.previous) if pod is not None]
        found = {budget["metadata"]["name"]: budget for pod in touched for budget in budgets_of(state, pod)}
        for budget in found.values():
            _recompute(state, budget)


def catch_up(state: State) -> None:
    """Recompute every budget."""
    for budget in state.store.all(BUDGETS):
        _recompute(state, budget)


def _recompute(state: State, budget: Obj) -> None:
    namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
    current = state.store.get(BUDGETS, namespace, name)
    if current is None:
        return
    chosen = label_selector_match(current["spec"].get("selector"))
    pods = [pod for pod in state.store.all("pods", namespace) if chosen(pod["metadata"].get("labels") or {})]
    pods = [pod for pod in pods if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
    expected, desired = _expected(state, current, pods)
    alive = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    disrupted = {k: v for k, v in current.get("status", {}).get("disruptedPods", {}).items() if k in alive}
    healthy = sum(ready(pod) for pod in pods if pod["metadata"]["name"] in alive - set(disrupted))
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = {
        "observedGeneration": current["metadata"]["generation"],
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [_condition(state, current, allowed)],
    } | ({"disruptedPods": disrupted} if disrupted else {})
    if status != current.get("status"):
        state.store.put(BUDGETS, {**current, "status": status})


def _condition(state: State, budget: Obj, allowed: int) -> Obj:
    truth, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    old: Obj = next(iter(budget.get("status", {}).get("conditions", [])), {})
    generation = budget["metadata"]["generation"]
    same = old.get("status") == truth
    return {
        "type": "DisruptionAllowed",
        "status": truth,
        "observedGeneration": generation,
        "lastTransitionTime": old["lastTransitionTime"] if same else stamp(state.now()),
        "reason": reason,
        "message": "",
    }


def _expected(state: State, budget: Obj, pods: list[Obj]) -> tuple[int, int]:
    """Pods there should be, and how many of them must stay healthy."""
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        expected = _scale(state, pods)
        return expected, max(0, expected - _share(spec["maxUnavailable"], expected))
    minimum = spec.get("minAvailable", 0)
    if isinstance(minimum, int):
        return len(pods), minimum
    expected = _scale(state, pods)
    return expected, _share(minimum, expected)


def _share(value: int | str, whole: int) -> int:
    """An IntOrString of a whole; percents round up, as the controller does for both fields."""
    return value if isinstance(value, int) else math.ceil(int(value.rstrip("%")) * whole / 100)


def _scale(state: State, pods: list[Obj]) -> int:
    """Replicas of all controllers of these pods; pods without one do not count."""
    scales: dict[str, int] = {}
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences") or []:
            table = SCALED.get(owner["kind"])
            if owner.get("controller") and table:
                found = state.store.get(table, pod["metadata"]["namespace"], owner["name"])
                scales[owner["uid"]] = found["spec"].get("replicas", 1) if found else 0
    return sum(scales.values())
