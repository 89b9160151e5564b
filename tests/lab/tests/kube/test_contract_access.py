"""Roles and bindings: what a review says is what the server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.lab.kube.kube import Kube

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"


class Subject:
    """A service account, the rights given to it, and what it may do."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube, self.namespace = kube, namespace
        kube.request(
            "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "worker"}}
        )
        self.user = f"system:serviceaccount:{namespace}:worker"
        self.subject = {"kind": "ServiceAccount", "name": "worker", "namespace": namespace}

    def _bind(self, path: str, kind: str, name: str, role: str, subject: dict[str, str]) -> None:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
        body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        code, answer = self.kube.request("POST", path, body)
        assert code == 201, answer

    def grant(self, *rules: dict[str, Any], name: str = "r") -> None:
        """In its own namespace."""
        path = f"{RBAC}/namespaces/{self.namespace}"
        self.kube.request("POST", f"{path}/roles", {"metadata": {"name": name}, "rules": list(rules)})
        self._bind(f"{path}/rolebindings", "Role", name, name, self.subject)

    def grant_everywhere(self, *rules: dict[str, Any], subject: dict[str, str] | None = None) -> None:
        name = f"{self.namespace}:test"
        self.kube.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
        self._bind(f"{RBAC}/clusterrolebindings", "ClusterRole", name, name, subject or self.subject)

    def forget(self) -> None:
        for plural in ("clusterroles", "clusterrolebindings"):
            self.kube.request("DELETE", f"{RBAC}/{plural}/{self.namespace}:test")

    def may(self, verb: str, resource: str, group: str = "", **attributes: str) -> bool:
        asked = {"verb": verb, "resource": resource, "group": group, **attributes}
        subresource = asked["resource"].partition("/")
        asked |= {"resource": subresource[0], "subresource": subresource[2]}
        groups = [
            "system:serviceaccounts",
            f"system:serviceaccounts:{self.namespace}",
            "system:authenticated",
        ]
        spec = {"user": self.user, "groups": groups, "resourceAttributes": asked}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        code, answer = self.kube.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        assert code == 201, answer
        return bool(answer["status"]["allowed"])

    def client(self) -> httpx.Client:
        return self.kube.client(self.kube.token(self.namespace, "worker"))


@pytest.fixture
def worker(kube: Kube, namespace: str) -> Any:
    subject = Subject(kube, namespace)
    yield subject
    subject.forget()


def rule(group: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    made: dict[str, Any] = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return made | ({"resourceNames": list(names)} if names else {})


def test_nothing_is_allowed_at_first(worker: Subject, namespace: str) -> None:
    assert not worker.may("list", "pods", namespace=namespace)
    with worker.client() as client:
        reply = client.get(f"/api/v1/namespaces/{namespace}/pods")
    assert (reply.status_code, reply.json()["reason"]) == (403, "Forbidden")
    expected = f'pods is forbidden: User "{worker.user}" cannot list resource "pods" in API group "" '
    assert reply.json()["message"] == expected + f'in the namespace "{namespace}"'


def test_a_role_holds_in_its_namespace_only(worker: Subject, namespace: str, eventually) -> None:
    worker.grant(rule("", "pods", "get list"))
    eventually(lambda: worker.may("list", "pods", namespace=namespace))
    assert not worker.may("list", "pods", namespace="default")
    assert not worker.may("list", "pods")
    assert not worker.may("delete", "pods", namespace=namespace)
    with worker.client() as client:
        assert client.get(f"/api/v1/namespaces/{namespace}/pods").status_code == 200
        assert client.get("/api/v1/pods").status_code == 403
        assert client.get(f"/api/v1/namespaces/{namespace}/pods/x").status_code == 404
        assert client.delete(f"/api/v1/namespaces/{namespace}/pods/x").status_code == 403


def test_a_cluster_role_holds_everywhere(worker: Subject, eventually) -> None:
    worker.grant_everywhere(rule("", "nodes", "get patch"), rule("policy", "poddisruptionbudgets", "list"))
    eventually(lambda: worker.may("patch", "nodes"))
    assert worker.may("list", "poddisruptionbudgets", "policy")
    assert not worker.may("list", "poddisruptionbudgets")
    assert not worker.may("patch", "nodes/status")


def test_a_subresource_is_a_right_of_its_own(
    worker: Subject, kube: Kube, namespace: str, node: str, eventually
) -> None:
    worker.grant_everywhere(rule("", "nodes", "get"), rule("", "pods/eviction nodes/status", "create patch"))
    eventually(lambda: worker.may("create", "pods/eviction", namespace=namespace))
    assert not worker.may("create", "pods", namespace=namespace)
    with worker.client() as client:
        headers = {"Content-Type": MERGE}
        patch = {"status": {"nodeInfo": {"bootID": "b"}}}
        assert client.patch(f"/api/v1/nodes/{node}/status", json=patch, headers=headers).status_code == 200
        assert client.patch(f"/api/v1/nodes/{node}", json={}, headers=headers).status_code == 403
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "x"}}
        assert client.post(f"/api/v1/namespaces/{namespace}/pods/x/eviction", json=body).status_code == 404


def test_a_rule_can_name_its_objects(worker: Subject, namespace: str, eventually) -> None:
    worker.grant(rule("coordination.k8s.io", "leases", "get update", "mine"))
    leases = {"resource": "leases", "group": "coordination.k8s.io", "namespace": namespace}
    eventually(lambda: worker.may("update", name="mine", **leases))
    assert not worker.may("update", name="yours", **leases)
    assert not worker.may("update", **leases)


def test_watching_is_not_listing(worker: Subject, eventually) -> None:
    worker.grant_everywhere(rule("", "nodes", "list"))
    eventually(lambda: worker.may("list", "nodes"))
    with worker.client() as client:
        assert client.get("/api/v1/nodes").status_code == 200
        assert client.get("/api/v1/nodes", params={"watch": "1", "timeoutSeconds": "1"}).status_code == 403


def test_stars_cover_all(worker: Subject, eventually) -> None:
    worker.grant_everywhere(rule("*", "*", "*"))
    eventually(lambda: worker.may("delete", "repairs/status", "clusterwright.dev"))


def test_a_group_can_be_bound(worker: Subject, namespace: str, eventually) -> None:
    group = {
        "kind": "Group",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": f"system:serviceaccounts:{namespace}",
    }
    worker.grant_everywhere(rule("", "nodes", "get"), subject=group)
    eventually(lambda: worker.may("get", "nodes"))


def test_a_binding_cannot_change_its_role(kube: Kube, worker: Subject, namespace: str) -> None:
    worker.grant(rule("", "pods", "get"))
    patch = {"roleRef": {"name": "other"}}
    code, answer = kube.request("PATCH", f"{RBAC}/namespaces/{namespace}/rolebindings/r", patch, MERGE)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "roleRef")


def test_an_account_may_ask_what_is_served_and_not_about_others(worker: Subject, namespace: str) -> None:
    spec = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": namespace}, "user": "x"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    with worker.client() as client:
        assert client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=body).status_code == 403
        assert client.get("/version").status_code == 200
        assert client.get("/apis").status_code == 200


def test_the_delegator_role_reviews_tokens(kube: Kube, worker: Subject, eventually) -> None:
    name = f"{worker.namespace}:test"
    worker._bind(f"{RBAC}/clusterrolebindings", "ClusterRole", name, "system:auth-delegator", worker.subject)
    eventually(lambda: worker.may("create", "tokenreviews", "authentication.k8s.io"))
    assert worker.may("create", "subjectaccessreviews", "authorization.k8s.io")
