"""What only the embedded server does: refuse what it would not enforce, and know no more than it says."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from tests.lab.kube.server import start

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = Path(__file__).parents[4] / "manifests" / "base" / "crds" / "repairs.yaml"


def definition(**extra: Any) -> dict[str, Any]:
    """Our definition under another group, with more in the schema of its spec."""
    made: dict[str, Any] = yaml.safe_load(OURS.read_text())
    made["spec"]["group"] = "embedded.example.com"
    made["metadata"]["name"] = "repairs.embedded.example.com"
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] |= extra
    return made


@pytest.mark.parametrize(
    ("extra", "where"),
    [
        ({"oneOf": []}, "properties[spec].oneOf"),
        (
            {"x-kubernetes-validations": [{"rule": "size(self.recordPath) > 0"}]},
            "x-kubernetes-validations[0].rule",
        ),
    ],
)
def test_a_schema_that_would_not_be_enforced_is_refused(
    embedded_kube: Kube, extra: dict[str, Any], where: str
) -> None:
    code, answer = embedded_kube.request("POST", DEFINITIONS, definition(**extra))
    assert code == 422
    cause = answer["details"]["causes"][0]
    assert cause["field"].endswith(where)
    assert "the embedded lab server does not enforce this" in cause["message"]


@pytest.mark.parametrize("parameter", ["resourceVersionMatch", "sendInitialEvents"])
@pytest.mark.parametrize("watch", ["true", "false"])
def test_a_list_that_would_not_be_as_asked_is_refused(
    embedded_kube: Kube, parameter: str, watch: str
) -> None:
    params = {parameter: "NotOlderThan", "resourceVersion": "1", "watch": watch}
    code, answer = embedded_kube.request("GET", "/api/v1/nodes", params=params)
    assert code == 400
    assert f"{parameter}: the embedded lab server does not serve this" in answer["message"]


def test_a_changed_definition_holds_at_once(embedded_kube: Kube) -> None:
    path = "/apis/embedded.example.com/v1alpha1/repairs"
    assert embedded_kube.request("POST", DEFINITIONS, definition())[0] == 201
    head = {"apiVersion": "embedded.example.com/v1alpha1", "kind": "Repair", "metadata": {"name": "a"}}
    body = {**head, "spec": {"recordPath": "p", "recordCommit": "c", "record": {}}}
    assert embedded_kube.request("POST", path, body)[0] == 201
    stricter = copy.deepcopy(definition())
    properties = stricter["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]
    properties["recordPath"]["pattern"] = "^incidents/"
    code, _ = embedded_kube.request(
        "PATCH", f"{DEFINITIONS}/repairs.embedded.example.com", stricter, "application/merge-patch+json"
    )
    assert code == 200
    body["metadata"] = {"name": "b"}
    code, answer = embedded_kube.request("POST", path, body)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.recordPath")
    embedded_kube.request("DELETE", f"{DEFINITIONS}/repairs.embedded.example.com")


def test_two_servers_know_nothing_of_each_other(embedded_kube: Kube, tmp_path: Path, name: str) -> None:
    with start("embedded", tmp_path) as other:
        assert other.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})[0] == 201
        assert embedded_kube.request("GET", f"/api/v1/nodes/{name}")[0] == 404
        with embedded_kube.client(other.admin_token) as client:
            assert client.get("/api/v1/nodes").status_code == 401


def test_a_stopped_server_is_gone_with_its_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with start("embedded", tmp_path) as kube:
        client = kube.client()
        assert client.get("/readyz").text == "ok"
    with pytest.raises(httpx.TransportError):
        client.get("/readyz")
    client.close()
    assert threading.active_count() == before
