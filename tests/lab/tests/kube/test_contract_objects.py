"""Create, read, replace: the life of an object, the same on both back ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def test_a_new_object_gets_uid_version_and_time(kube: Kube, namespace: str) -> None:
    code, made = kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert code == 201
    assert (made["kind"], made["apiVersion"], made["data"]) == ("ConfigMap", "v1", {"k": "v"})
    meta = made["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["resourceVersion"].isdigit()
    assert meta["namespace"] == namespace
    assert "generation" not in meta
    assert kube.request("GET", config_maps(namespace) + "/a") == (200, made)


def test_a_generated_name_keeps_its_prefix(kube: Kube, namespace: str) -> None:
    code, made = kube.request("POST", config_maps(namespace), {"metadata": {"generateName": "x-"}})
    assert code == 201
    assert re.fullmatch(r"x-[a-z0-9]{5}", made["metadata"]["name"])


def test_the_same_name_twice_is_refused(kube: Kube, namespace: str) -> None:
    kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    code, answer = kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    assert code == 409
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 409,
    }


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        (
            {"metadata": {"name": "UP_PER"}},
            (422, "Invalid", "a lowercase RFC 1123 subdomain must consist of"),
        ),
        ({"metadata": {}}, (422, "Invalid", "name or generateName is required")),
        ({"metadata": {"name": "a", "labels": {"k": "a b"}}}, (422, "Invalid", "a valid label must be")),
        ({"metadata": {"name": "a", "labels": {"k": "x" * 64}}}, (422, "Invalid", "metadata.labels")),
        ({"metadata": {"name": "a", "annotations": {"a/b/c": ""}}}, (422, "Invalid", "metadata.annotations")),
        (
            {"metadata": {"name": "a", "resourceVersion": "7"}},
            (500, None, "should not be set on objects to be created"),
        ),
        (
            {"metadata": {"name": "a", "namespace": "other"}},
            (400, "BadRequest", "does not match the namespace"),
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}},
            (400, "BadRequest", "cannot be handled as a"),
        ),
        ({"metadata": {"name": "a"}, "data": {"k": 1}}, (400, "BadRequest", "cannot unmarshal number into")),
    ],
)
def test_a_wrong_body_is_refused_with_a_reason(
    kube: Kube, namespace: str, body: dict[str, object], refusal: tuple[int, str | None, str]
) -> None:
    code, reason, words = refusal
    found, answer = kube.request("POST", config_maps(namespace), body)
    assert (found, answer.get("reason"), answer["code"]) == (code, reason, code)
    assert words in answer["message"]


def test_an_invalid_object_names_each_field(kube: Kube) -> None:
    taints = [{"key": "k", "value": "x" * 64, "effect": "NoSchedule"}, {"key": "k", "effect": "Sometimes"}]
    body = {"metadata": {"name": "gpu-bad"}, "spec": {"taints": taints}}
    code, answer = kube.request("POST", "/api/v1/nodes", body)
    assert code == 422
    causes = {(cause["field"], cause["reason"]) for cause in answer["details"]["causes"]}
    assert causes >= {
        ("metadata.taints[0].value", "FieldValueInvalid"),
        ("metadata.taints[1].effect", "FieldValueNotSupported"),
    }
    assert answer["details"]["kind"] == "Node"


def test_broken_json_is_a_bad_request(kube: Kube, namespace: str) -> None:
    with kube.client() as client:
        headers = {"Content-Type": "application/json"}
        reply = client.post(config_maps(namespace), content=b'{"metadata":', headers=headers)
    assert reply.status_code == 400
    assert reply.json()["reason"] == "BadRequest"


def test_a_namespace_must_exist(kube: Kube, name: str) -> None:
    code, answer = kube.request("POST", config_maps(name), {"metadata": {"name": "a"}})
    assert (code, answer["message"]) == (404, f'namespaces "{name}" not found')


def test_what_is_not_there_is_not_found(kube: Kube, namespace: str) -> None:
    code, answer = kube.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/a")
    assert (code, answer["reason"]) == (404, "NotFound")
    assert answer["message"] == 'leases.coordination.k8s.io "a" not found'
    assert answer["details"] == {"name": "a", "group": "coordination.k8s.io", "kind": "leases"}


def test_an_unknown_resource_is_not_found(kube: Kube) -> None:
    code, answer = kube.request("GET", "/api/v1/nodez")
    assert (code, answer["message"]) == (404, "the server could not find the requested resource")


def test_unknown_fields_are_dropped_or_refused_if_strict(kube: Kube, namespace: str) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}, "surprise": 1}
    code, answer = kube.request("POST", config_maps(namespace), body, params={"fieldValidation": "Strict"})
    assert code == 400
    assert 'strict decoding error: unknown field "surprise"' in answer["message"]
    code, made = kube.request("POST", config_maps(namespace), body)
    assert code == 201
    assert "surprise" not in made


def test_a_put_with_an_old_version_is_a_conflict(kube: Kube, namespace: str) -> None:
    _, first = kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    code, second = kube.request("PUT", config_maps(namespace) + "/a", {**first, "data": {"k": "1"}})
    assert code == 200
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    code, answer = kube.request("PUT", config_maps(namespace) + "/a", {**first, "data": {"k": "2"}})
    assert (code, answer["reason"]) == (409, "Conflict")
    assert (
        "the object has been modified; please apply your changes to the latest version" in answer["message"]
    )


def test_a_put_without_a_version_wins_where_the_kind_allows_it(kube: Kube, namespace: str) -> None:
    kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    body = {"metadata": {"name": "a"}, "data": {"k": "1"}}
    assert kube.request("PUT", config_maps(namespace) + "/a", body)[0] == 200
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    kube.request("POST", leases, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "one"}})
    code, answer = kube.request(
        "PUT", leases + "/a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "two"}}
    )
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "metadata.resourceVersion"


def test_a_put_for_another_uid_is_a_conflict(kube: Kube, namespace: str) -> None:
    kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    body = {"metadata": {"name": "a", "uid": "00000000-0000-0000-0000-000000000000"}}
    code, answer = kube.request("PUT", config_maps(namespace) + "/a", body)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer["message"]


def test_a_put_under_another_name_is_refused(kube: Kube, namespace: str) -> None:
    kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    code, answer = kube.request("PUT", config_maps(namespace) + "/a", {"metadata": {"name": "b"}})
    assert code == 400
    assert answer["message"] == "the name of the object (b) does not match the name on the URL (a)"


def test_a_write_that_changes_nothing_keeps_the_version(kube: Kube, namespace: str) -> None:
    _, first = kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}, "data": {"k": "v"}})
    code, same = kube.request("PUT", config_maps(namespace) + "/a", first)
    assert code == 200
    assert same["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_dry_run_leaves_nothing_behind(kube: Kube, namespace: str) -> None:
    code, made = kube.request(
        "POST", config_maps(namespace), {"metadata": {"name": "a"}}, params={"dryRun": "All"}
    )
    assert code == 201
    assert made["metadata"]["uid"]
    assert kube.request("GET", config_maps(namespace) + "/a")[0] == 404


def test_the_server_keeps_its_own_metadata(kube: Kube, namespace: str) -> None:
    _, first = kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    forged = {"name": "a", "creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"k": "v"}}
    code, second = kube.request("PUT", config_maps(namespace) + "/a", {"metadata": forged})
    assert code == 200
    assert second["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["metadata"]["labels"] == {"k": "v"}


def test_a_generation_counts_changes_of_the_spec_only(kube: Kube, namespace: str) -> None:
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    _, made = kube.request("POST", budgets, {"metadata": {"name": "a"}, "spec": spec})
    assert made["metadata"]["generation"] == 1
    merge = "application/merge-patch+json"
    _, labelled = kube.request("PATCH", budgets + "/a", {"metadata": {"labels": {"k": "v"}}}, merge)
    assert labelled["metadata"]["generation"] == 1
    _, changed = kube.request("PATCH", budgets + "/a", {"spec": {"minAvailable": 2}}, merge)
    assert changed["metadata"]["generation"] == 2


def test_a_namespace_is_labelled_active_and_empties_when_deleted(
    kube: Kube, namespace: str, eventually
) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    _, found = kube.request("GET", path)
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}
    assert found["status"] == {"phase": "Active"}
    kube.request("POST", config_maps(namespace), {"metadata": {"name": "a"}})
    assert kube.request("DELETE", path)[0] == 200
    eventually(lambda: kube.request("GET", path)[0] == 404)
    assert kube.request("GET", config_maps(namespace) + "/a")[0] == 404


def test_a_namespace_that_ends_takes_nothing_new(kube: Kube, namespace: str, eventually) -> None:
    body = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    kube.request("POST", config_maps(namespace), body)
    code, ending = kube.request("DELETE", f"/api/v1/namespaces/{namespace}")
    assert code == 200
    assert ending["status"]["phase"] == "Terminating"
    code, answer = kube.request("POST", config_maps(namespace), {"metadata": {"name": "late"}})
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    free = {"metadata": {"finalizers": None}}
    kube.request("PATCH", config_maps(namespace) + "/held", free, "application/merge-patch+json")
    eventually(lambda: kube.request("GET", f"/api/v1/namespaces/{namespace}")[0] == 404)
