"""What a server refuses although the request is right: it is throttled, behind with its work, or full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def make_pod(kube: Kube, namespace: str, node: str, name: str) -> tuple[int, dict[str, Any]]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "example"}]}
    body = {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec}
    return kube.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)


def test_a_throttled_account_is_told_when_to_try_again_and_not_why(kube: Kube, namespace: str) -> None:
    reply = kube.throttle(namespace, "default")
    assert reply.status_code == 429
    assert int(reply.headers["Retry-After"]) >= 1
    assert reply.headers["Content-Type"].startswith("text/plain")
    assert reply.text == "Too many requests, please try again later.\n"


def test_a_budget_that_nobody_has_looked_at_yet_refuses_evictions(
    kube: Kube, namespace: str, node: str
) -> None:
    assert make_pod(kube, namespace, node, "a")[0] == 201
    running = {"status": {"phase": "Running"}}
    path = f"/api/v1/namespaces/{namespace}/pods/a"
    assert kube.request("PATCH", f"{path}/status", running, "application/merge-patch+json")[0] == 200
    with kube.held_controllers(), kube.client() as client:
        spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 0}
        budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        assert kube.request("POST", budgets, {"metadata": {"name": "guard"}, "spec": spec})[0] == 201
        reply = client.post(f"{path}/eviction", json=eviction("a"))
    answer = reply.json()
    assert (reply.status_code, answer["reason"]) == (429, "TooManyRequests")
    cause = answer["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget guard is still being processed by the server."
    assert (answer["details"]["retryAfterSeconds"], reply.headers["Retry-After"]) == (10, "10")
    assert "deletionTimestamp" not in kube.request("GET", path)[1]["metadata"]


def test_a_budget_is_looked_at_once_the_controllers_go_on(
    kube: Kube, namespace: str, node: str, eventually
) -> None:
    assert make_pod(kube, namespace, node, "a")[0] == 201
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    with kube.held_controllers():
        spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 0}
        kube.request("POST", budgets, {"metadata": {"name": "guard"}, "spec": spec})
    eventually(lambda: (kube.request("GET", f"{budgets}/guard")[1].get("status") or {}).get("expectedPods"))
    assert kube.request("POST", f"/api/v1/namespaces/{namespace}/pods/a/eviction", eviction("a"))[0] == 201


def test_a_quota_that_has_run_out_refuses_one_more(kube: Kube, namespace: str, node: str, eventually) -> None:
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    hard = {"pods": "1", "count/leases.coordination.k8s.io": "0"}
    assert kube.request("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": hard}})[0] == 201
    eventually(
        lambda: (kube.request("GET", f"{quotas}/q")[1].get("status") or {}).get("used", {}).get("pods") == "0"
    )
    assert make_pod(kube, namespace, node, "a")[0] == 201
    code, answer = make_pod(kube, namespace, node, "b")
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    code, answer = kube.request("POST", leases, {"metadata": {"name": "l"}})
    assert code == 403
    assert "exceeded quota: q, requested: count/leases.coordination.k8s.io=1" in answer["message"]
    kube.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/a", {"gracePeriodSeconds": 0})
    eventually(lambda: make_pod(kube, namespace, node, "c")[0] == 201)
