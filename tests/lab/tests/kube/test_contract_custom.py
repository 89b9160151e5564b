"""Custom resources: definition, schema, pruning, status, immutability."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = Path(__file__).parents[4] / "manifests" / "base" / "crds" / "repairs.yaml"


class Custom:
    """A kind of our own definition with the schema of our repairs, under a group nobody else uses."""

    def __init__(self, kube: Kube, name: str, definition: dict[str, Any]) -> None:
        self.kube, self.group, self.definition = kube, f"{name}.example.com", definition
        definition["metadata"]["name"] = self.full_name = f"repairs.{self.group}"
        definition["spec"]["group"] = self.group
        self.path = f"/apis/{self.group}/v1alpha1/repairs"
        self.head = {"apiVersion": f"{self.group}/v1alpha1", "kind": "Repair"}

    def body(self, name: str = "a", **more: Any) -> dict[str, Any]:
        spec = {
            "recordPath": "p",
            "recordCommit": "c",
            "record": {"action": "reboot", "nested": {"any": [1, None]}},
        }
        return {**self.head, "metadata": {"name": name}, "spec": spec, **more}

    def define(self) -> dict[str, Any]:
        manager = {"fieldManager": "contract"}
        code, made = self.kube.request(
            "PATCH", f"{DEFINITIONS}/{self.full_name}", self.definition, APPLY, manager
        )
        assert code in (200, 201), made
        return made

    def established(self) -> bool:
        _, found = self.kube.request("GET", f"{DEFINITIONS}/{self.full_name}")
        conditions = found.get("status", {}).get("conditions") or []
        return any((item["type"], item["status"]) == ("Established", "True") for item in conditions)


def defined(kube: Kube, name: str, eventually: Callable[[Callable[[], Any]], Any]) -> Custom:
    custom = Custom(kube, name, yaml.safe_load(OURS.read_text()))
    custom.define()
    eventually(custom.established)
    eventually(lambda: kube.request("GET", custom.path)[0] == 200)
    return custom


@pytest.fixture(scope="session")
def shared(kube: Kube, eventually: Callable[[Callable[[], Any]], Any]) -> Iterator[Custom]:
    custom = defined(kube, f"t-{uuid.uuid4().hex[:10]}", eventually)
    yield custom
    kube.request("DELETE", f"{DEFINITIONS}/{custom.full_name}")


@pytest.fixture
def repairs(kube: Kube, shared: Custom) -> Custom:
    """The definition of the session, without objects."""
    kube.request("DELETE", shared.path)
    return shared


def test_a_definition_makes_its_kind_known(kube: Kube, repairs: Custom) -> None:
    _, group = kube.request("GET", f"/apis/{repairs.group}/v1alpha1")
    found = {item["name"]: item for item in group["resources"]}
    assert (found["repairs"]["kind"], found["repairs"]["namespaced"]) == ("Repair", False)
    assert found["repairs/status"]["kind"] == "Repair"
    _, listed = kube.request("GET", repairs.path)
    assert (listed["kind"], listed["items"]) == ("RepairList", [])


def test_a_custom_object_is_made_once(kube: Kube, repairs: Custom) -> None:
    code, made = kube.request("POST", repairs.path, repairs.body())
    assert code == 201
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["record"]["nested"] == {"any": [1, None]}
    code, answer = kube.request("POST", repairs.path, repairs.body())
    assert (code, answer["reason"]) == (409, "AlreadyExists")
    _, listed = kube.request("GET", repairs.path)
    assert listed["items"][0]["kind"] == "Repair"


def test_unknown_fields_are_pruned_where_the_schema_keeps_none(kube: Kube, repairs: Custom) -> None:
    body = repairs.body(surprise=1)
    body["spec"]["surprise"] = 2
    body["spec"]["record"]["surprise"] = 3
    _, made = kube.request("POST", repairs.path, body)
    assert "surprise" not in made
    assert "surprise" not in made["spec"]
    assert made["spec"]["record"]["surprise"] == 3


def test_a_new_object_has_no_status_yet(kube: Kube, repairs: Custom) -> None:
    _, made = kube.request("POST", repairs.path, repairs.body(status={"phase": "Running"}))
    assert "status" not in made


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        (None, "spec", "FieldValueRequired"),
        ({"recordPath": "p", "record": {}}, "spec.recordCommit", "FieldValueRequired"),
        ({"recordPath": 1, "recordCommit": "c", "record": {}}, "spec.recordPath", "FieldValueTypeInvalid"),
        ({"recordPath": "p", "recordCommit": "c", "record": "x"}, "spec.record", "FieldValueTypeInvalid"),
        ({"recordPath": "p", "recordCommit": None, "record": {}}, "spec.recordCommit", "FieldValueRequired"),
    ],
)
def test_the_schema_is_enforced(kube: Kube, repairs: Custom, spec: Any, field: str, reason: str) -> None:
    body = repairs.body()
    del body["spec"]
    code, answer = kube.request("POST", repairs.path, body | ({"spec": spec} if spec else {}))
    assert (code, answer["reason"]) == (422, "Invalid")
    cause = answer["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == (field, reason)


def test_a_body_says_its_kind(kube: Kube, repairs: Custom) -> None:
    body = {key: value for key, value in repairs.body().items() if key != "kind"}
    code, answer = kube.request("POST", repairs.path, body)
    assert code == 400
    assert "Object 'Kind' is missing" in answer["message"]


def test_the_spec_is_never_edited(kube: Kube, repairs: Custom) -> None:
    kube.request("POST", repairs.path, repairs.body())
    code, answer = kube.request("PATCH", repairs.path + "/a", {"spec": {"recordPath": "q"}}, MERGE)
    assert code == 422
    assert answer["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: a repair is never edited; record a new attempt instead",
            "field": "spec",
        }
    ]


def test_the_status_has_an_endpoint_of_its_own(kube: Kube, repairs: Custom) -> None:
    kube.request("POST", repairs.path, repairs.body())
    patch = {
        "metadata": {"labels": {"l": "1"}},
        "spec": {"recordPath": "q"},
        "status": {"phase": "Running", "x": 1},
    }
    code, changed = kube.request("PATCH", repairs.path + "/a/status", patch, MERGE)
    assert code == 200
    assert changed["status"] == {"phase": "Running", "x": 1}
    assert changed["spec"]["recordPath"] == "p"
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 1
    patch = {"metadata": {"labels": {"l": "1"}}, "status": {"phase": "Held"}}
    _, changed = kube.request("PATCH", repairs.path + "/a", patch, MERGE)
    assert changed["status"]["phase"] == "Running"
    assert changed["metadata"]["labels"] == {"l": "1"}
    assert kube.request("GET", repairs.path + "/a/status") == (200, changed)


def test_a_status_is_checked_too(kube: Kube, repairs: Custom) -> None:
    kube.request("POST", repairs.path, repairs.body())
    code, answer = kube.request("PATCH", repairs.path + "/a/status", {"status": {"phase": "Dreaming"}}, MERGE)
    assert code == 422
    cause = answer["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == ("status.phase", "FieldValueNotSupported")
    assert cause["message"].startswith(
        'Unsupported value: "Dreaming": supported values: "Pending", "Running"'
    )


def test_a_rival_write_of_the_status_is_noticed(kube: Kube, repairs: Custom) -> None:
    _, made = kube.request("POST", repairs.path, repairs.body())
    code, _ = kube.request("PUT", repairs.path + "/a/status", {**made, "status": {"phase": "Running"}})
    assert code == 200
    code, answer = kube.request("PUT", repairs.path + "/a/status", {**made, "status": {"phase": "Held"}})
    assert (code, answer["reason"]) == (409, "Conflict")
    del made["metadata"]["resourceVersion"]
    code, answer = kube.request("PUT", repairs.path + "/a/status", {**made, "status": {"phase": "Held"}})
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")


def test_a_strategic_patch_of_a_custom_object_is_refused(kube: Kube, repairs: Custom) -> None:
    kube.request("POST", repairs.path, repairs.body())
    code, answer = kube.request("PATCH", repairs.path + "/a", {}, "application/strategic-merge-patch+json")
    assert (code, answer["reason"]) == (415, "UnsupportedMediaType")


def test_a_custom_object_can_be_applied(kube: Kube, repairs: Custom) -> None:
    manager = {"fieldManager": "one"}
    code, made = kube.request("PATCH", repairs.path + "/a", repairs.body(), APPLY, manager)
    assert code == 201
    fields = made["metadata"]["managedFields"][0]["fieldsV1"]
    record = {"f:action": {}, "f:nested": {".": {}, "f:any": {}}}
    assert fields == {"f:spec": {"f:record": record, "f:recordCommit": {}, "f:recordPath": {}}}
    assert kube.request("PATCH", repairs.path + "/a", repairs.body(), APPLY, manager) == (200, made)
    body = repairs.body("b")
    body["spec"]["surprise"] = 1
    code, answer = kube.request("PATCH", repairs.path + "/b", body, APPLY, manager)
    assert code == 500
    assert ".spec.surprise: field not declared in schema" in answer["message"]


def test_managers_of_a_custom_object_are_told_apart_by_endpoint(kube: Kube, repairs: Custom) -> None:
    who = {"fieldManager": "one"}
    kube.request("POST", repairs.path, repairs.body(), params=who)
    _, changed = kube.request("PATCH", repairs.path + "/a/status", {"status": {"phase": "Held"}}, MERGE, who)
    entries = {
        entry.get("subresource", ""): entry["fieldsV1"] for entry in changed["metadata"]["managedFields"]
    }
    assert set(entries[""]) == {"f:spec"}
    assert entries["status"] == {"f:status": {".": {}, "f:phase": {}}}


def test_a_definition_that_goes_takes_its_objects_along(kube: Kube, name: str, eventually) -> None:
    repairs = defined(kube, name, eventually)
    kube.request("POST", repairs.path, repairs.body())
    kube.request("DELETE", f"{DEFINITIONS}/{repairs.full_name}")
    eventually(lambda: kube.request("GET", repairs.path)[0] == 404)


def test_a_definition_is_named_after_what_it_defines(kube: Kube, name: str) -> None:
    custom = Custom(kube, name, yaml.safe_load(OURS.read_text()))
    custom.definition["metadata"]["name"] = f"others.{custom.group}"
    code, answer = kube.request("POST", DEFINITIONS, custom.definition)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.name")
