"""Evictions and the budgets that stand in their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T00:00:00Z"}


class Pods:
    """Pods of one namespace, bound to one node."""

    def __init__(self, kube: Kube, namespace: str, node: str) -> None:
        self.kube, self.node = kube, node
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"

    def make(self, name: str, *, ready: bool = True, phase: str = "Running") -> None:
        spec = {"nodeName": self.node, "containers": [{"name": "c", "image": "example"}]}
        body = {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec}
        assert self.kube.request("POST", self.path, body)[0] == 201
        condition = READY if ready else {**READY, "status": "False"}
        status = {"status": {"phase": phase, "conditions": [condition]}}
        assert self.kube.request("PATCH", f"{self.path}/{name}/status", status, MERGE)[0] == 200

    def guard(self, name: str = "guard", **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec}}
        code, answer = self.kube.request("POST", self.budgets, body)
        assert code == 201, answer

    def budget(self, name: str = "guard") -> dict[str, Any]:
        found: dict[str, Any] = self.kube.request("GET", f"{self.budgets}/{name}")[1].get("status", {})
        return found

    def evict(self, name: str, **options: Any) -> tuple[int, dict[str, Any]]:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        body |= {"deleteOptions": options} if options else {}
        return self.kube.request("POST", f"{self.path}/{name}/eviction", body)

    def get(self, name: str) -> dict[str, Any]:
        return self.kube.request("GET", f"{self.path}/{name}")[1]

    def confirm_gone(self, name: str) -> None:
        assert self.kube.request("DELETE", f"{self.path}/{name}", {"gracePeriodSeconds": 0})[0] == 200


@pytest.fixture
def pods(kube: Kube, namespace: str, node: str) -> Pods:
    return Pods(kube, namespace, node)


def test_an_evicted_pod_is_marked_until_its_kubelet_confirms(pods: Pods) -> None:
    pods.make("a")
    code, answer = pods.evict("a")
    assert (code, answer["kind"], answer["status"]) == (201, "Status", "Success")
    marked = pods.get("a")
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(item for item in marked["status"]["conditions"] if item["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
    assert pods.evict("a")[0] == 201
    pods.confirm_gone("a")
    assert pods.get("a")["code"] == 404


def test_a_budget_tells_how_many_may_go(pods: Pods, eventually) -> None:
    pods.guard(minAvailable=1)
    eventually(lambda: pods.budget().get("observedGeneration") == 1)
    assert pods.budget()["disruptionsAllowed"] == 0
    for name in "ab":
        pods.make(name)
    eventually(lambda: pods.budget()["disruptionsAllowed"] == 1)
    status = pods.budget()
    assert (status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]) == (2, 1, 2)
    condition = status["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


def test_a_spent_budget_refuses_and_names_itself(pods: Pods, eventually) -> None:
    for name in "ab":
        pods.make(name)
    pods.guard(minAvailable=1)
    eventually(lambda: pods.budget().get("disruptionsAllowed") == 1)
    assert pods.evict("a")[0] == 201
    eventually(lambda: pods.budget()["currentHealthy"] == 1)
    with pods.kube.client() as client:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
        reply = client.post(f"{pods.path}/b/eviction", json=body)
    answer = reply.json()
    assert (reply.status_code, answer["reason"]) == (429, "TooManyRequests")
    assert answer["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = answer["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == "The disruption budget guard needs 1 healthy pods and has 1 currently"
    assert "Retry-After" not in reply.headers
    assert "deletionTimestamp" not in pods.get("b")["metadata"]


def test_a_dry_run_spends_no_budget(pods: Pods, eventually) -> None:
    for name in "ab":
        pods.make(name)
    pods.guard(minAvailable=1)
    eventually(lambda: pods.budget().get("disruptionsAllowed") == 1)
    assert pods.evict("a", dryRun=["All"])[0] == 201
    assert "deletionTimestamp" not in pods.get("a")["metadata"]
    assert pods.budget()["disruptionsAllowed"] == 1


def test_a_pod_that_never_ran_or_has_ended_needs_no_budget(pods: Pods, eventually) -> None:
    pods.make("pending", ready=False, phase="Pending")
    pods.make("done", ready=False, phase="Succeeded")
    pods.guard(minAvailable=5)
    eventually(lambda: pods.budget().get("observedGeneration") == 1)
    assert pods.evict("pending")[0] == 201
    assert pods.evict("done")[0] == 201
    assert pods.get("done")["code"] == 404


def test_an_unready_pod_goes_if_the_rest_is_healthy(pods: Pods, eventually) -> None:
    pods.make("good")
    pods.make("bad", ready=False)
    pods.guard(minAvailable=1)
    eventually(lambda: pods.budget().get("currentHealthy") == 1)
    assert pods.budget()["disruptionsAllowed"] == 0
    assert pods.evict("good")[0] == 429
    assert pods.evict("bad")[0] == 201


def test_an_unready_pod_goes_always_if_the_budget_says_so(pods: Pods, eventually) -> None:
    pods.make("bad", ready=False)
    pods.guard(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    eventually(lambda: pods.budget().get("expectedPods") == 1)
    assert pods.evict("bad")[0] == 201


def test_two_budgets_on_one_pod_are_an_error(pods: Pods, eventually) -> None:
    pods.make("a")
    for name in ("one", "two"):
        pods.guard(name, minAvailable=0)
        eventually(lambda name=name: pods.budget(name).get("expectedPods") == 1)
    code, answer = pods.evict("a")
    assert code == 500
    assert "more than one PodDisruptionBudget" in answer["message"]


def test_a_precondition_guards_an_eviction(pods: Pods) -> None:
    pods.make("a")
    wrong = {"uid": "00000000-0000-0000-0000-000000000000"}
    code, answer = pods.evict("a", preconditions=wrong)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert pods.evict("a", preconditions={"uid": pods.get("a")["metadata"]["uid"]})[0] == 201


def test_an_eviction_can_shorten_the_grace_period(pods: Pods) -> None:
    pods.make("a")
    assert pods.evict("a", gracePeriodSeconds=5)[0] == 201
    assert pods.get("a")["metadata"]["deletionGracePeriodSeconds"] == 5


def test_an_eviction_of_nothing_is_not_found(pods: Pods) -> None:
    assert pods.evict("nobody")[0] == 404


def test_a_share_counts_the_pods_of_the_controllers(
    kube: Kube, pods: Pods, namespace: str, eventually
) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "example"}]},
    }
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/replicasets"
    code, answer = kube.request("POST", path, {"metadata": {"name": "a"}, "spec": spec})
    assert code == 201, answer
    pods.guard(maxUnavailable="50%")
    eventually(lambda: pods.budget().get("observedGeneration") == 1)
    status = pods.budget()
    assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (0, 0, 0)


def test_a_budget_has_one_bound(pods: Pods) -> None:
    body = {"metadata": {"name": "x"}, "spec": {"selector": {}, "minAvailable": 1, "maxUnavailable": 1}}
    code, answer = pods.kube.request("POST", pods.budgets, body)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec")
