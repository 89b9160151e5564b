"""Deletion: answers, preconditions, finalizers, grace periods, owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"


def leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def pod(kube: Kube, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "example"}], **spec}}
    code, made = kube.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    assert code == 201, made
    return made


def test_a_deletion_answers_with_a_status(kube: Kube, namespace: str) -> None:
    _, made = kube.request("POST", leases(namespace), {"metadata": {"name": "a"}})
    code, answer = kube.request("DELETE", leases(namespace) + "/a")
    assert (code, answer["status"]) == (200, "Success")
    details = {"name": "a", "group": "coordination.k8s.io", "kind": "leases", "uid": made["metadata"]["uid"]}
    assert answer["details"] == details
    assert kube.request("DELETE", leases(namespace) + "/a")[0] == 404


def test_a_path_below_an_object_deletes_nothing(kube: Kube, node: str) -> None:
    for below in ("status", "nothing"):
        assert kube.request("DELETE", f"/api/v1/nodes/{node}/{below}")[0] in (404, 405)
    assert kube.request("GET", f"/api/v1/nodes/{node}")[0] == 200


def test_preconditions_hold_or_nothing_is_deleted(kube: Kube, namespace: str) -> None:
    _, made = kube.request("POST", leases(namespace), {"metadata": {"name": "a"}})
    wrong = ({"uid": "00000000-0000-0000-0000-000000000000"}, {"resourceVersion": "1"})
    for precondition in wrong:
        code, answer = kube.request("DELETE", leases(namespace) + "/a", {"preconditions": precondition})
        assert (code, answer["reason"]) == (409, "Conflict")
        assert "in the precondition" in answer["message"]
    right = {key: made["metadata"][key] for key in ("uid", "resourceVersion")}
    assert kube.request("DELETE", leases(namespace) + "/a", {"preconditions": right})[0] == 200


def test_a_finalizer_holds_an_object_until_it_is_taken_away(kube: Kube, namespace: str) -> None:
    body = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
    kube.request("POST", leases(namespace), body)
    code, marked = kube.request("DELETE", leases(namespace) + "/a")
    assert code == 200
    assert marked["metadata"]["deletionTimestamp"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    code, again = kube.request("DELETE", leases(namespace) + "/a")
    assert (code, again["metadata"]["deletionTimestamp"]) == (200, marked["metadata"]["deletionTimestamp"])
    code, _ = kube.request("PATCH", leases(namespace) + "/a", {"metadata": {"finalizers": None}}, MERGE)
    assert code == 200
    assert kube.request("GET", leases(namespace) + "/a")[0] == 404


def test_a_deletion_of_many_takes_the_selected(kube: Kube, namespace: str) -> None:
    for item, label in (("a", "x"), ("b", "x"), ("c", "y")):
        kube.request("POST", leases(namespace), {"metadata": {"name": item, "labels": {"l": label}}})
    assert kube.request("DELETE", leases(namespace), params={"labelSelector": "l=x"})[0] == 200
    _, left = kube.request("GET", leases(namespace))
    assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


def test_a_dry_run_deletes_nothing(kube: Kube, namespace: str) -> None:
    kube.request("POST", leases(namespace), {"metadata": {"name": "a"}})
    assert kube.request("DELETE", leases(namespace) + "/a", params={"dryRun": "All"})[0] == 200
    assert kube.request("GET", leases(namespace) + "/a")[0] == 200


def test_a_pod_on_a_node_waits_for_its_kubelet(kube: Kube, namespace: str, node: str) -> None:
    pod(kube, namespace, "a", nodeName=node, terminationGracePeriodSeconds=60)
    path = f"/api/v1/namespaces/{namespace}/pods/a"
    code, marked = kube.request("DELETE", path)
    assert code == 200
    assert (marked["kind"], marked["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 60)
    assert kube.request("GET", path)[1]["metadata"]["deletionTimestamp"]
    code, sooner = kube.request("DELETE", path, {"gracePeriodSeconds": 5})
    assert (code, sooner["metadata"]["deletionGracePeriodSeconds"]) == (200, 5)
    code, gone = kube.request("DELETE", path, {"gracePeriodSeconds": 0})
    assert (code, gone["kind"]) == (200, "Pod")
    assert kube.request("GET", path)[0] == 404


def test_the_grace_period_can_stand_in_the_query(kube: Kube, namespace: str, node: str) -> None:
    pod(kube, namespace, "a", nodeName=node)
    path = f"/api/v1/namespaces/{namespace}/pods/a"
    assert kube.request("DELETE", path, params={"gracePeriodSeconds": "0"})[0] == 200
    assert kube.request("GET", path)[0] == 404


def test_a_pod_without_a_node_goes_at_once(kube: Kube, namespace: str) -> None:
    pod(kube, namespace, "a")
    assert kube.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/a")[0] == 200
    assert kube.request("GET", f"/api/v1/namespaces/{namespace}/pods/a")[0] == 404


def test_what_is_owned_goes_with_its_owner(kube: Kube, namespace: str, eventually) -> None:
    _, owner = kube.request("POST", leases(namespace), {"metadata": {"name": "owner"}})
    reference = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "owner"}
    reference["uid"] = owner["metadata"]["uid"]
    kube.request("POST", leases(namespace), {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    kube.request("DELETE", leases(namespace) + "/owner")
    eventually(lambda: kube.request("GET", leases(namespace) + "/owned")[0] == 404)


def test_a_pod_needs_its_service_account_and_keeps_its_spec(kube: Kube, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "example"}]}}
    body["spec"]["serviceAccountName"] = "nobody"
    code, answer = kube.request("POST", path, body)
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert 'serviceaccount "nobody" not found' in answer["message"]
    made = pod(kube, namespace, "a")
    assert made["spec"]["serviceAccountName"] == "default"
    assert made["spec"]["terminationGracePeriodSeconds"] == 30
    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["generation"] == 1
    code, answer = kube.request("PATCH", f"{path}/a", {"spec": {"nodeName": "elsewhere"}}, MERGE)
    assert (code, answer["reason"]) == (422, "Invalid")
    code, answer = kube.request("POST", path, {"metadata": {"name": "b"}, "spec": {"containers": []}})
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "spec.containers"
