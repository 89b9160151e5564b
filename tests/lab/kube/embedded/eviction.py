"""pods/eviction: a deletion that asks the PodDisruptionBudgets first."""

from __future__ import annotations

from tests.lab.kube.embedded.delete import check_preconditions, deleted
from tests.lab.kube.embedded.disruption import budgets_of, ready
from tests.lab.kube.embedded.errors import ApiError, Obj, bad_request, status
from tests.lab.kube.embedded.state import Request, State, stamp
from tests.lab.kube.embedded.write import existing

REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
PROCESSING_SECONDS = 10
"""When to try again while the controller has not seen the budget (kube-apiserver, eviction.go)."""
TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


def evict(state: State, request: Request, body: Obj) -> Obj:
    """Evict one pod.

    Raises:
        ApiError: 429 with cause DisruptionBudget, 404, 409 for a precondition, 500 for two budgets.
    """
    pod = existing(state, request)
    if (body.get("metadata") or {}).get("name", request.name) != request.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    dry = request.dry_run or "All" in (options.get("dryRun") or [])
    if not _free_of_budgets(pod):
        _ask_budget(state, pod, dry=dry)
    check_preconditions(request.resource, pod, options)
    if not dry:
        _delete(state, request, options)
    return status("Success")


def _free_of_budgets(pod: Obj) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _ask_budget(state: State, pod: Obj, *, dry: bool) -> None:
    budgets = budgets_of(state, pod)
    if len(budgets) > 1:
        raise ApiError(500, "", TWO_BUDGETS)
    if not budgets or _spares_the_unready(budgets[0], pod):
        return
    budget, current = budgets[0], budgets[0].get("status", {})
    name, needed = budget["metadata"]["name"], current.get("desiredHealthy", 0)
    if current.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        why = f"The disruption budget {name} is still being processed by the server."
        raise _refused(why, retryAfterSeconds=PROCESSING_SECONDS)
    if current.get("disruptionsAllowed", 0) == 0:
        have = f"needs {needed} healthy pods and has {current.get('currentHealthy', 0)} currently"
        raise _refused(f"The disruption budget {name} {have}")
    if not dry:
        disrupted = {**current.get("disruptedPods", {}), pod["metadata"]["name"]: stamp(state.now())}
        lowered = {"disruptionsAllowed": current["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
        state.store.put("poddisruptionbudgets.policy", {**budget, "status": {**current, **lowered}})


def _spares_the_unready(budget: Obj, pod: Obj) -> bool:
    """Whether a pod that is not healthy anyway may go without being counted."""
    if ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    current = budget.get("status", {})
    healthy: int = current.get("currentHealthy", 0)
    needed: int = current.get("desiredHealthy", 0)
    return healthy >= needed > 0


def _refused(why: str, **details: int) -> ApiError:
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return ApiError(429, "TooManyRequests", REFUSED, {"causes": causes, **details})


def _delete(state: State, request: Request, options: Obj) -> None:
    pod = existing(state, request)
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": stamp(state.now()),
    }
    current = pod.get("status", {})
    others = [item for item in current.get("conditions", []) if item["type"] != "DisruptionTarget"]
    pod = state.store.put("pods", {**pod, "status": {**current, "conditions": [*others, condition]}})
    marked, gone = deleted(state, request.resource, pod, options)
    if gone:
        state.store.remove("pods", marked)
    elif marked is not pod:
        state.store.put("pods", marked)
