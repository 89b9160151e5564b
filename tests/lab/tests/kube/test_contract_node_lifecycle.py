"""Nodes that fall silent: conditions Unknown, taints, and pods that are evicted for them.

A server of its own for each back end: the nodes of other tests have no kubelet, and would all be unreachable.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.kube.fixture import require_real
from tests.lab.kube.server import start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
GRACE_SECONDS = 3.0
KINDS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
UNREACHABLE = "node.kubernetes.io/unreachable"


@pytest.fixture(scope="module", params=["embedded", "real"])
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    if request.param == "real":
        require_real()
    with start(request.param, tmp_path_factory.mktemp("watched")) as kube:
        kube.watch_nodes(GRACE_SECONDS)
        yield kube


def beat(kube: Kube, node: str) -> None:
    renewed = {"spec": {"renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}}
    if kube.request("PATCH", f"{LEASES}/{node}", renewed, MERGE)[0] == 404:
        kube.request("POST", LEASES, {"metadata": {"name": node}, **renewed})


def report_ready(kube: Kube, node: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": "Lab", **times}
        for kind in KINDS
    ]
    status = {"status": {"conditions": conditions}}
    assert kube.request("PATCH", f"/api/v1/nodes/{node}/status", status, MERGE)[0] == 200


def register(kube: Kube, node: str) -> None:
    assert kube.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})[0] == 201
    beat(kube, node)
    report_ready(kube, node)


def taints(kube: Kube, node: str) -> set[tuple[str, str]]:
    found = kube.request("GET", f"/api/v1/nodes/{node}")[1]["spec"].get("taints", [])
    return {(each["key"], each["effect"]) for each in found}


def conditions(kube: Kube, node: str) -> dict[str, Any]:
    found = kube.request("GET", f"/api/v1/nodes/{node}")[1]["status"]["conditions"]
    return {each["type"]: each for each in found}


def make_pod(kube: Kube, node: str, name: str, **spec: Any) -> str:
    path = "/api/v1/namespaces/default/pods"
    body = {"nodeName": node, "containers": [{"name": "c", "image": "example"}], **spec}
    code, answer = kube.request("POST", path, {"metadata": {"name": name}, "spec": body})
    assert code == 201, answer
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T00:00:00Z"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    assert kube.request("PATCH", f"{path}/{name}/status", status, MERGE)[0] == 200
    return f"{path}/{name}"


def test_a_silent_node_is_marked_tainted_and_emptied_until_it_speaks_again(
    watched: Kube, name: str, eventually
) -> None:
    silent, other = f"silent-{name}", f"other-{name}"
    for node in (silent, other):
        register(watched, node)

    def meanwhile(what: Any) -> Any:
        """Keep the other node alive while waiting."""

        def ask() -> Any:
            beat(watched, other)
            return what()

        return eventually(ask)

    meanwhile(lambda: taints(watched, silent) == set())
    brief = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    short = make_pod(watched, silent, f"short-{name}", tolerations=[brief])
    patient = make_pod(watched, silent, f"patient-{name}")
    meanwhile(lambda: taints(watched, silent) >= {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")})
    found = conditions(watched, silent)
    assert {found[kind]["status"] for kind in KINDS} == {"Unknown"}
    assert found["Ready"]["reason"] == "NodeStatusUnknown"
    assert found["Ready"]["message"] == "Kubelet stopped posting node status."
    meanwhile(lambda: "deletionTimestamp" in watched.request("GET", short)[1]["metadata"])
    targets = watched.request("GET", short)[1]["status"]["conditions"]
    assert "DeletionByTaintManager" in {each.get("reason") for each in targets}
    status = watched.request("GET", patient)[1]
    assert "deletionTimestamp" not in status["metadata"]
    ready = [each["status"] for each in status["status"]["conditions"] if each["type"] == "Ready"]
    assert ready == ["False"]
    report_ready(watched, silent)

    def back() -> bool:
        beat(watched, silent)
        return taints(watched, silent) == set()

    meanwhile(back)
    assert taints(watched, other) == set()
    for path in (short, patient):
        watched.request("DELETE", path, {"gracePeriodSeconds": 0})
    for node in (silent, other):
        watched.request("DELETE", f"/api/v1/nodes/{node}")


def test_pods_of_a_node_that_is_gone_are_collected(tmp_path: Path, name: str, eventually) -> None:
    """Of the embedded server alone: the real collector waits for up to a minute."""
    with start("embedded", tmp_path) as kube:
        kube.watch_nodes(0.5)
        register(kube, name)
        pod = make_pod(kube, name, "left-behind")
        stuck = make_pod(kube, name, "terminating")
        kube.request("DELETE", stuck)
        kube.request("DELETE", f"/api/v1/nodes/{name}")
        eventually(lambda: kube.request("GET", pod)[0] == kube.request("GET", stuck)[0] == 404)


def test_no_pod_is_evicted_when_no_node_is_ready(watched: Kube, name: str, eventually) -> None:
    register(watched, name)
    eventually(lambda: taints(watched, name) == set())
    eventually(lambda: taints(watched, name) >= {(UNREACHABLE, "NoSchedule")})
    eventually(lambda: conditions(watched, name)["Ready"]["status"] == "Unknown")
    eventually(lambda: (UNREACHABLE, "NoExecute") not in taints(watched, name))
    watched.request("DELETE", f"/api/v1/nodes/{name}")
