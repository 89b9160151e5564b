"""The three kinds of patch, and what the status endpoint may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TAINT = {"key": "example.com/t", "value": "a", "effect": "NoSchedule"}


@pytest.fixture
def path(node: str) -> str:
    return f"/api/v1/nodes/{node}"


def condition(kind: str, status: str) -> dict[str, str]:
    time = "2026-11-30T00:00:00Z"
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": time,
        "lastTransitionTime": time,
        "reason": "R",
    }


def test_a_merge_patch_changes_and_removes(kube: Kube, path: str) -> None:
    patch = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"unschedulable": True}}
    code, changed = kube.request("PATCH", path, patch, MERGE)
    assert code == 200
    assert changed["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert changed["spec"]["unschedulable"] is True
    back = {"metadata": {"labels": {"a": None}}, "spec": {"unschedulable": False}}
    _, changed = kube.request("PATCH", path, back, MERGE)
    assert changed["metadata"]["labels"] == {"b": "2"}
    assert "unschedulable" not in changed["spec"]


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_taints_are_replaced_as_a_whole(kube: Kube, path: str, kind: str) -> None:
    _, fresh = kube.request("GET", path)
    assert fresh["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    code, changed = kube.request("PATCH", path, {"spec": {"taints": [TAINT]}}, kind)
    assert code == 200
    assert changed["spec"]["taints"] == [TAINT]
    _, changed = kube.request("PATCH", path, {"spec": {"taints": None}}, kind)
    assert "taints" not in changed["spec"]


def test_a_patch_with_an_old_version_is_a_conflict(kube: Kube, path: str) -> None:
    _, first = kube.request("GET", path)
    version = first["metadata"]["resourceVersion"]
    patch: dict[str, Any] = {"metadata": {"resourceVersion": version, "labels": {"a": "1"}}}
    assert kube.request("PATCH", path, patch, MERGE)[0] == 200
    patch["metadata"]["labels"] = {"a": "2"}
    code, answer = kube.request("PATCH", path, patch, MERGE)
    assert (code, answer["reason"]) == (409, "Conflict")


def test_a_patch_for_another_uid_is_invalid(kube: Kube, path: str) -> None:
    patch = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000", "labels": {"a": "1"}}}
    code, answer = kube.request("PATCH", path, patch, MERGE)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.uid")


def test_a_json_patch_tests_before_it_changes(kube: Kube, path: str) -> None:
    kube.request("PATCH", path, {"spec": {"taints": [TAINT, {**TAINT, "key": "example.com/u"}]}}, MERGE)
    remove = [
        {"op": "test", "path": "/spec/taints/0/value", "value": "a"},
        {"op": "remove", "path": "/spec/taints/0"},
    ]
    code, changed = kube.request("PATCH", path, remove, JSON)
    assert code == 200
    assert [taint["key"] for taint in changed["spec"]["taints"]] == ["example.com/u"]
    add = [{"op": "add", "path": "/metadata/labels", "value": {"example.com/l": "1"}},
           {"op": "replace", "path": "/metadata/labels/example.com~1l", "value": "2"}]  # fmt: skip
    _, changed = kube.request("PATCH", path, add, JSON)
    assert changed["metadata"]["labels"] == {"example.com/l": "2"}
    wrong = [
        {"op": "test", "path": "/spec/taints/0/value", "value": "z"},
        {"op": "remove", "path": "/spec/taints/0"},
    ]
    code, answer = kube.request("PATCH", path, wrong, JSON)
    assert (code, answer["reason"]) == (422, "Invalid")
    assert kube.request("GET", path)[1] == changed


def test_a_strategic_patch_merges_conditions_by_type(kube: Kube, path: str) -> None:
    ready, pressure = condition("Ready", "True"), condition("MemoryPressure", "False")
    code, _ = kube.request(
        "PATCH", path + "/status", {"status": {"conditions": [ready, pressure]}}, STRATEGIC
    )
    assert code == 200
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    _, changed = kube.request("PATCH", path + "/status", patch, STRATEGIC)
    found = {item["type"]: item for item in changed["status"]["conditions"]}
    assert found == {"Ready": {**ready, "status": "False"}, "MemoryPressure": pressure}
    patch = {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}
    _, changed = kube.request("PATCH", path + "/status", patch, STRATEGIC)
    assert changed["status"]["conditions"] == [pressure]


def test_a_merge_patch_replaces_conditions(kube: Kube, path: str) -> None:
    kube.request("PATCH", path + "/status", {"status": {"conditions": [condition("Ready", "True")]}}, MERGE)
    _, changed = kube.request(
        "PATCH", path + "/status", {"status": {"conditions": [condition("X", "True")]}}, MERGE
    )
    assert [item["type"] for item in changed["status"]["conditions"]] == ["X"]


def test_the_status_endpoint_changes_no_spec_and_the_other_no_status(kube: Kube, path: str) -> None:
    both = {"spec": {"unschedulable": True}, "status": {"nodeInfo": {"bootID": "boot-1"}}}
    _, changed = kube.request("PATCH", path + "/status", both, MERGE)
    assert "unschedulable" not in changed["spec"]
    assert changed["status"]["nodeInfo"]["bootID"] == "boot-1"
    both["status"] = {"nodeInfo": {"bootID": "boot-2"}}
    _, changed = kube.request("PATCH", path, both, MERGE)
    assert changed["spec"]["unschedulable"] is True
    assert changed["status"]["nodeInfo"]["bootID"] == "boot-1"


def test_a_put_of_the_status_keeps_the_rest(kube: Kube, path: str) -> None:
    _, found = kube.request("GET", path)
    found["status"]["nodeInfo"]["bootID"] = "boot-1"
    found["spec"] = {"unschedulable": True}
    code, changed = kube.request("PUT", path + "/status", found)
    assert code == 200
    assert changed["status"]["nodeInfo"]["bootID"] == "boot-1"
    assert "unschedulable" not in changed["spec"]


def test_a_patch_of_what_is_not_there_is_not_found(kube: Kube, name: str) -> None:
    assert kube.request("PATCH", f"/api/v1/nodes/{name}", {}, MERGE)[0] == 404


def test_a_patch_of_an_unknown_kind_is_refused(kube: Kube, path: str) -> None:
    code, answer = kube.request("PATCH", path, {}, "application/json")
    assert (code, answer["reason"]) == (415, "UnsupportedMediaType")


def test_force_is_for_apply_only(kube: Kube, path: str) -> None:
    code, answer = kube.request("PATCH", path, {}, MERGE, {"force": "true"})
    assert code == 422
    assert answer["details"]["causes"][0]["field"] == "force"
