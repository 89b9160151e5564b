"""Server-side apply: ownership, conflicts, removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
Answer = tuple[int, dict[str, Any]]


class Applier:
    """One manager that applies data and labels to one ConfigMap."""

    def __init__(self, kube: Kube, namespace: str, manager: str) -> None:
        self.kube, self.manager = kube, manager
        self.path = f"/api/v1/namespaces/{namespace}/configmaps/a"

    def apply(self, data: dict[str, str], labels: dict[str, str] | None = None, **params: str) -> Answer:
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": data,
        }
        if labels:
            body["metadata"]["labels"] = labels
        return self.kube.request("PATCH", self.path, body, APPLY, {"fieldManager": self.manager, **params})


@pytest.fixture
def one(kube: Kube, namespace: str) -> Applier:
    return Applier(kube, namespace, "one")


@pytest.fixture
def two(kube: Kube, namespace: str) -> Applier:
    return Applier(kube, namespace, "two")


def owned(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


def test_the_first_apply_creates_and_owns_what_it_says(one: Applier) -> None:
    code, made = one.apply({"k": "v"}, {"l": "1"})
    assert code == 201
    assert made["data"] == {"k": "v"}
    entry = made["metadata"]["managedFields"][0]
    assert {key: entry[key] for key in ("manager", "operation", "apiVersion", "fieldsType")} == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
    }
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}


def test_applying_the_same_again_changes_nothing(one: Applier) -> None:
    _, made = one.apply({"k": "v"})
    assert one.apply({"k": "v"}) == (200, made)


def test_what_is_no_longer_applied_is_removed(one: Applier) -> None:
    one.apply({"k": "v", "m": "w"}, {"l": "1"})
    code, changed = one.apply({"m": "w"})
    assert code == 200
    assert changed["data"] == {"m": "w"}
    assert "labels" not in changed["metadata"]
    _, changed = one.apply({})
    assert "data" not in changed


def test_what_another_manager_owns_stays(one: Applier, two: Applier) -> None:
    one.apply({"k": "v", "m": "w"})
    two.apply({"m": "w", "n": "x"})
    _, changed = one.apply({"k": "v"})
    assert changed["data"] == {"k": "v", "m": "w", "n": "x"}
    assert owned(changed) == {
        ("one", "Apply"): {"f:data": {"f:k": {}}},
        ("two", "Apply"): {"f:data": {"f:m": {}, "f:n": {}}},
    }


def test_another_value_for_an_owned_field_is_a_conflict(one: Applier, two: Applier) -> None:
    one.apply({"k": "v"}, {"l": "1"})
    code, answer = two.apply({"k": "other"})
    assert (code, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.k'
    causes = [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}]
    assert answer["details"]["causes"] == causes
    code, answer = two.apply({"k": "other"}, {"l": "2"})
    assert code == 409
    assert {cause["field"] for cause in answer["details"]["causes"]} == {".data.k", ".metadata.labels.l"}
    assert answer["message"].startswith('Apply failed with 2 conflicts: conflicts with "one":\n- .data.k\n- ')


def test_force_takes_the_field_over(one: Applier, two: Applier) -> None:
    one.apply({"k": "v", "m": "w"})
    code, changed = two.apply({"k": "other"}, force="true")
    assert code == 200
    assert changed["data"] == {"k": "other", "m": "w"}
    assert owned(changed) == {
        ("one", "Apply"): {"f:data": {"f:m": {}}},
        ("two", "Apply"): {"f:data": {"f:k": {}}},
    }
    code, answer = one.apply({"k": "v", "m": "w"})
    assert code == 409
    assert answer["details"]["causes"][0]["message"] == 'conflict with "two"'


def test_an_update_takes_what_it_changes(kube: Kube, one: Applier) -> None:
    one.apply({"k": "v", "m": "w"})
    _, changed = kube.request("PATCH", one.path, {"data": {"k": "x"}}, MERGE, {"fieldManager": "person"})
    assert owned(changed) == {
        ("one", "Apply"): {"f:data": {"f:m": {}}},
        ("person", "Update"): {"f:data": {"f:k": {}}},
    }
    code, answer = one.apply({"k": "v", "m": "w"})
    assert code == 409
    assert answer["details"]["causes"][0]["message"] == 'conflict with "person" using v1'


def test_what_an_update_removes_is_nobodys(kube: Kube, one: Applier) -> None:
    one.apply({"k": "v", "m": "w"})
    _, changed = kube.request("PATCH", one.path, {"data": {"k": None}}, MERGE, {"fieldManager": "person"})
    assert owned(changed) == {("one", "Apply"): {"f:data": {"f:m": {}}}}


def test_a_created_object_belongs_to_its_creator(kube: Kube, namespace: str, one: Applier) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    _, made = kube.request(
        "POST", f"/api/v1/namespaces/{namespace}/configmaps", body, params={"fieldManager": "person"}
    )
    assert owned(made) == {("person", "Update"): {"f:data": {".": {}, "f:k": {}}}}
    _, shared = one.apply({"k": "v"})
    assert owned(shared) == {
        ("one", "Apply"): {"f:data": {"f:k": {}}},
        ("person", "Update"): {"f:data": {".": {}, "f:k": {}}},
    }
    _, left = one.apply({})
    assert left["data"] == {"k": "v"}


def test_the_manager_defaults_to_the_user_agent(kube: Kube, namespace: str) -> None:
    with kube.client() as client:
        body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
        headers = {"User-Agent": "clusterwright-test/1.0 (x)"}
        made = client.post(f"/api/v1/namespaces/{namespace}/configmaps", json=body, headers=headers).json()
    assert made["metadata"]["managedFields"][0]["manager"] == "clusterwright-test"


def test_a_dry_run_shows_the_conflict_and_the_result_and_stores_neither(
    kube: Kube, one: Applier, two: Applier
) -> None:
    _, made = one.apply({"k": "v"})
    assert two.apply({"k": "other"}, dryRun="All")[0] == 409
    code, shown = one.apply({"k": "new"}, dryRun="All")
    assert (code, shown["data"]) == (200, {"k": "new"})
    assert kube.request("GET", one.path)[1] == made


def test_an_apply_needs_a_manager_a_kind_and_no_managed_fields(kube: Kube, one: Applier) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    code, answer = kube.request("PATCH", one.path, body, APPLY)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "fieldManager")
    named = {"fieldManager": "one"}
    assert kube.request("PATCH", one.path, {"metadata": {"name": "a"}}, APPLY, named)[0] == 400
    body["metadata"]["managedFields"] = [{"manager": "x"}]
    code, answer = kube.request("PATCH", one.path, body, APPLY, named)
    assert (code, answer["message"]) == (400, "metadata.managedFields must be nil")


def test_an_applied_field_must_exist(kube: Kube, one: Applier) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "surprise": 1}
    code, answer = kube.request("PATCH", one.path, body, APPLY, {"fieldManager": "one"})
    assert code == 500
    assert ".surprise: field not declared in schema" in answer["message"]


def test_an_apply_can_ask_for_a_version(kube: Kube, one: Applier) -> None:
    one.apply({"k": "v"})
    metadata = {"name": "a", "resourceVersion": "1"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "w"}}
    code, answer = kube.request("PATCH", one.path, body, APPLY, {"fieldManager": "one"})
    assert (code, answer["reason"]) == (409, "Conflict")


def test_lists_with_keys_are_merged_item_by_item(kube: Kube, node: str) -> None:
    def status(*types: str) -> dict[str, Any]:
        time = "2026-11-30T00:00:00Z"
        rest = {"status": "True", "lastHeartbeatTime": time, "lastTransitionTime": time}
        conditions = [{"type": kind, **rest} for kind in types]
        head = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        return {**head, "status": {"conditions": conditions}}

    path = f"/api/v1/nodes/{node}/status"
    for manager, types in (("one", ("A", "B")), ("two", ("C",)), ("one", ("B",))):
        code, found = kube.request("PATCH", path, status(*types), APPLY, {"fieldManager": manager})
        assert code == 200, found
    assert {item["type"] for item in found["status"]["conditions"]} == {"B", "C"}
    entries = {
        entry["manager"]: entry
        for entry in found["metadata"]["managedFields"]
        if entry["operation"] == "Apply"
    }
    assert entries["two"]["subresource"] == "status"
    assert set(entries["two"]["fieldsV1"]["f:status"]["f:conditions"]) == {'k:{"type":"C"}'}


def test_atomic_lists_are_owned_as_a_whole(kube: Kube, node: str) -> None:
    def spec(key: str) -> dict[str, Any]:
        head = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
        return {**head, "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}

    path = f"/api/v1/nodes/{node}"
    first = {"fieldManager": "one", "force": "true"}
    code, found = kube.request("PATCH", path, spec("example.com/a"), APPLY, first)
    assert (code, found["spec"]["taints"]) == (200, [{"key": "example.com/a", "effect": "NoSchedule"}])
    code, answer = kube.request("PATCH", path, spec("example.com/b"), APPLY, {"fieldManager": "two"})
    assert (code, answer["details"]["causes"][0]["field"]) == (409, ".spec.taints")


def test_an_untracked_object_was_there_before_the_first_apply(kube: Kube, node: str) -> None:
    path = f"/api/v1/nodes/{node}"
    _, marked = kube.request("PATCH", path, {"metadata": {"annotations": {"example.com/a": "1"}}}, MERGE)
    assert "managedFields" not in marked["metadata"]
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node, "annotations": {"example.com/a": "2"}},
    }
    code, answer = kube.request("PATCH", path, body, APPLY, {"fieldManager": "one"})
    assert code == 409
    cause = answer["details"]["causes"][0]
    assert cause["message"] == 'conflict with "before-first-apply" using v1'
    assert cause["field"] == ".metadata.annotations.example.com/a"
