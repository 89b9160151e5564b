"""Lists: selectors, pages, revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube


@pytest.fixture
def leases(kube: Kube, namespace: str) -> str:
    """Five leases: a b c of app=x, tier 1 2 3; d of app=y; e without labels."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    labels: dict[str, dict[str, str]] = {
        "a": {"app": "x", "tier": "1"},
        "b": {"app": "x", "tier": "2"},
        "c": {"app": "x", "tier": "3"},
        "d": {"app": "y"},
        "e": {},
    }
    for name, marks in labels.items():
        assert kube.request("POST", path, {"metadata": {"name": name, "labels": marks}})[0] == 201
    return path


def names(answer: dict[str, Any]) -> str:
    return "".join(item["metadata"]["name"] for item in answer["items"])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", "abcde"),
        ("app=x", "abc"),
        ("app==x,tier=2", "b"),
        ("app!=x", "de"),
        ("app", "abcd"),
        ("!app", "e"),
        ("tier in (1, 3)", "ac"),
        ("tier notin (1,3)", "bde"),
        ("app in (x,y),tier!=1", "bcd"),
        ("app=", ""),
    ],
)
def test_labels_select(kube: Kube, leases: str, selector: str, expected: str) -> None:
    code, answer = kube.request("GET", leases, params={"labelSelector": selector})
    assert (code, names(answer)) == (200, expected)


@pytest.mark.parametrize("selector", ["a===b", "app in x", "-"])
def test_a_bad_label_selector_is_refused(kube: Kube, leases: str, selector: str) -> None:
    code, answer = kube.request("GET", leases, params={"labelSelector": selector})
    assert (code, answer["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(("selector", "expected"), [("metadata.name=b", "b"), ("metadata.name!=b", "acde")])
def test_names_select(kube: Kube, leases: str, selector: str, expected: str) -> None:
    assert names(kube.request("GET", leases, params={"fieldSelector": selector})[1]) == expected


def test_pods_are_selected_by_node_and_phase(kube: Kube, namespace: str, node: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name, where in (("a", node), ("b", node), ("c", "elsewhere")):
        spec = {"nodeName": where, "containers": [{"name": "c", "image": "example"}]}
        kube.request("POST", path, {"metadata": {"name": name}, "spec": spec})
    running = {"status": {"phase": "Running"}}
    kube.request("PATCH", path + "/b/status", running, "application/merge-patch+json")

    def found(selector: str) -> str:
        return names(kube.request("GET", "/api/v1/pods", params={"fieldSelector": selector})[1])

    assert found(f"spec.nodeName={node}") == "ab"
    assert found(f"spec.nodeName={node},status.phase=Running") == "b"
    assert found(f"spec.nodeName={node},status.phase!=Running") == "a"
    for name in "abc":
        kube.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})


def test_an_unknown_field_selector_is_refused(kube: Kube, leases: str) -> None:
    code, answer = kube.request("GET", leases, params={"fieldSelector": "spec.holderIdentity=x"})
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert "spec.holderIdentity" in answer["message"]


def test_a_list_names_its_kind_and_its_items_do_not(kube: Kube, leases: str) -> None:
    _, answer = kube.request("GET", leases)
    assert (answer["kind"], answer["apiVersion"]) == ("LeaseList", "coordination.k8s.io/v1")
    assert answer["metadata"]["resourceVersion"].isdigit()
    assert not {"kind", "apiVersion"} & set(answer["items"][0])


def test_pages_together_are_the_list_as_it_was(kube: Kube, leases: str) -> None:
    _, first = kube.request("GET", leases, params={"limit": "2"})
    assert names(first) == "ab"
    assert first["metadata"]["remainingItemCount"] == 3
    kube.request("POST", leases, {"metadata": {"name": "bb"}})
    kube.request("DELETE", leases + "/d")
    again = {"limit": "2", "continue": first["metadata"]["continue"]}
    _, second = kube.request("GET", leases, params=again)
    assert names(second) == "cd"
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    again["continue"] = second["metadata"]["continue"]
    _, third = kube.request("GET", leases, params=again)
    assert names(third) == "e"
    assert not third["metadata"].get("continue")


def test_pages_of_a_selection_hold_only_it(kube: Kube, leases: str) -> None:
    page = {"limit": "2", "labelSelector": "app=x"}
    _, first = kube.request("GET", leases, params=page)
    _, second = kube.request("GET", leases, params={**page, "continue": first["metadata"]["continue"]})
    assert (names(first), names(second)) == ("ab", "c")


def test_the_pods_of_a_node_come_in_pages(kube: Kube, namespace: str, node: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name, where in (("a", node), ("b", "elsewhere"), ("c", node), ("d", node)):
        spec = {"nodeName": where, "containers": [{"name": "c", "image": "example"}]}
        assert kube.request("POST", path, {"metadata": {"name": name}, "spec": spec})[0] == 201
    page = {"limit": "2", "fieldSelector": f"spec.nodeName={node}"}
    _, first = kube.request("GET", "/api/v1/pods", params=page)
    assert names(first) == "ac"
    assert "remainingItemCount" not in first["metadata"]
    kube.request("DELETE", f"{path}/d", {"gracePeriodSeconds": 0})
    again = {**page, "continue": first["metadata"]["continue"]}
    _, second = kube.request("GET", "/api/v1/pods", params=again)
    assert names(second) == "d"
    assert not second["metadata"].get("continue")
    for name in "abc":
        kube.request("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})


def test_a_made_up_continue_token_is_refused(kube: Kube, leases: str) -> None:
    assert kube.request("GET", leases, params={"continue": "nonsense"})[0] == 400


def test_a_page_of_a_forgotten_list_is_gone(kube: Kube, leases: str) -> None:
    _, first = kube.request("GET", leases, params={"limit": "2"})
    kube.request("DELETE", leases + "/a")
    kube.compact()
    token = {"limit": "2", "continue": first["metadata"]["continue"]}
    code, answer = kube.request("GET", leases, params=token)
    assert (code, answer["reason"]) == (410, "Expired")
