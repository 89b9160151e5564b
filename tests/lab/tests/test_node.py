"""The lab's nodes on the embedded API: that they do what kubelets and kernels do, and no more."""

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checks import report
from tests.lab.kube.server import start
from tests.lab.node import Node
from tests.lab.pods import run_bare, run_job

XID = (
    "NVRM: Xid (PCI:0000:1b:00): 154, "
    "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
)
QUICK = {"report_interval_seconds": "1"}


class Sink(http.server.ThreadingHTTPServer):
    """Takes any report, as a bot would that trusts everybody."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Reception)
        self.reports: list[report.NodeReport] = []
        self.tokens: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def newest(self, node: str) -> report.NodeReport | None:
        return next((each for each in reversed(self.reports) if each.node == node), None)


class Reception(http.server.BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        taken = report.decode(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.reports.append(taken)
        self.server.tokens.append(self.headers["Authorization"].removeprefix("Bearer "))
        body = json.dumps({"accepted": taken.sequence}).encode()
        self.send_response(202)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    yield server
    server.shutdown()
    server.server_close()


def wait_for(what: Callable[[], bool], seconds: float = 20, node: Node | None = None) -> None:
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            pytest.fail("not seen in time" + (f"; the agent says:\n{node.agent_says()}" if node else ""))
        time.sleep(0.05)


def api_node(kube: Any, name: str) -> Any:
    status, found = kube.request("GET", f"/api/v1/nodes/{name}")
    assert status == 200
    return found


def pod_phase(kube: Any, name: str) -> str:
    status, pod = kube.request("GET", f"/api/v1/namespaces/training/pods/{name}")
    return (
        "gone"
        if status == 404
        else "terminating"
        if "deletionTimestamp" in pod["metadata"]
        else pod["status"]["phase"]
    )


def evict(kube: Any, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "training"}}
    status, _ = kube.request("POST", f"/api/v1/namespaces/training/pods/{pod}/eviction", body)
    assert status == 201


def test_a_node_registers_ready_with_its_gpus_its_place_and_its_boot(
    kube: Any, sink: Sink, tmp_path: Path
) -> None:
    foreign = {"key": "example.com/keep", "effect": "NoSchedule"}
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, foreign]
    kind = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-01"}}
    kube.request("POST", "/api/v1/nodes", {**kind, "spec": {"taints": taints}})
    with Node("gpu-01", kube, tmp_path, sink.url, index=5) as node:
        seen = api_node(kube, "gpu-01")
        assert (
            seen["metadata"]["labels"].items()
            >= {
                "kubernetes.io/hostname": "gpu-01",
                "clusterwright.dev/pool": "h100",
                "clusterwright.dev/rack": "rack-2",
            }.items()
        )
        assert seen["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert seen["status"]["nodeInfo"]["bootID"] == node.boot_id
        assert {each["type"]: each["status"] for each in seen["status"]["conditions"]}["Ready"] == "True"
        assert seen["spec"]["taints"] == [foreign]


def test_a_node_renews_its_lease_until_its_power_goes(kube: Any, sink: Sink, tmp_path: Path) -> None:
    def renewed(name: str) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
        return str(kube.request("GET", path)[1].get("spec", {}).get("renewTime", ""))

    def wait_for_renewal(name: str) -> None:
        before = renewed(name)
        wait_for(lambda: renewed(name) > before, 30)

    with (
        Node("gpu-02", kube, tmp_path, sink.url, index=0) as node,
        Node("gpu-12", kube, tmp_path, sink.url, index=1),
    ):
        wait_for_renewal("gpu-02")
        node.power("Off")
        wait_for_renewal("gpu-12")
        last = renewed("gpu-02")
        for _ in range(2):
            wait_for_renewal("gpu-12")
        assert renewed("gpu-02") == last


def test_a_pod_runs_and_its_eviction_is_confirmed_after_a_moment(
    kube: Any, sink: Sink, tmp_path: Path
) -> None:
    with Node("gpu-03", kube, tmp_path, sink.url, index=0):
        pod = run_job(kube, "gpu-03", "train-a", gpus=8)
        wait_for(lambda: pod_phase(kube, pod) == "Running")
        evict(kube, pod)
        assert pod_phase(kube, pod) == "terminating"
        wait_for(lambda: pod_phase(kube, pod) == "gone")


def test_a_node_without_power_confirms_no_eviction(kube: Any, sink: Sink, tmp_path: Path) -> None:
    with (
        Node("gpu-04", kube, tmp_path, sink.url, index=0, boot_seconds=0.2) as node,
        Node("gpu-14", kube, tmp_path, sink.url, index=1),
    ):
        pod, other = run_bare(kube, "gpu-04", "notebook", gpus=1), run_bare(kube, "gpu-14", "elsewhere")
        wait_for(lambda: pod_phase(kube, pod) == pod_phase(kube, other) == "Running")
        node.power("Off")
        for each in (pod, other):
            evict(kube, each)
        wait_for(lambda: pod_phase(kube, other) == "gone")
        assert pod_phase(kube, pod) == "terminating"
        node.power("On")
        wait_for(lambda: pod_phase(kube, pod) == "gone")


def test_the_agent_reports_the_new_boot_after_a_reboot(kube: Any, sink: Sink, tmp_path: Path) -> None:
    def reported() -> str:
        newest = sink.newest("gpu-05")
        return newest.boot_id if newest else ""

    with Node("gpu-05", kube, tmp_path, sink.url, index=0, boot_seconds=1.0, agent_settings=QUICK) as node:
        before = node.boot_id
        wait_for(lambda: reported() == before, node=node)
        node.write_kernel(XID)
        node.reboot()
        assert not node.ready
        assert not node.agent.running
        node.wait_ready()
        assert node.boot_id != before
        assert api_node(kube, "gpu-05")["status"]["nodeInfo"]["bootID"] == node.boot_id
        wait_for(lambda: reported() == node.boot_id, node=node)
        log = (node.root.path / "dev/kmsg").read_text()
        assert "Linux version" in log
        assert "NVRM: loading NVIDIA UNIX x86_64 Kernel Module" in log
        assert "Xid" not in log
        newest = sink.newest("gpu-05")
        assert newest is not None
        assert len(newest.inventory.gpus or ()) == 8


def test_the_agents_token_is_its_pods_and_names_its_node(kube: Any, sink: Sink, tmp_path: Path) -> None:
    with Node("gpu-06", kube, tmp_path, sink.url, index=0):
        wait_for(lambda: bool(sink.tokens))
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": sink.tokens[-1], "audiences": [report.AUDIENCE]},
    }
    status, review = kube.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    assert status == 201
    user = review["status"]["user"]
    assert user["username"] == "system:serviceaccount:clusterwright:clusterwright-agent"
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["gpu-06"]


def test_a_fault_may_survive_and_a_gpu_may_not(kube: Any, sink: Sink, tmp_path: Path) -> None:
    with Node("gpu-07", kube, tmp_path, sink.url, index=0, boot_seconds=0.2, agent_settings=QUICK) as node:
        node.write_kernel(XID)
        node.fault_survives_reboot = True
        node.gpus_after_reboot = 7
        node.reboot()
        node.wait_ready()
        assert XID in (node.root.path / "dev/kmsg").read_text()
        assert api_node(kube, "gpu-07")["status"]["capacity"]["nvidia.com/gpu"] == "7"
        wait_for(
            lambda: (r := sink.newest("gpu-07")) is not None and len(r.inventory.gpus or ()) == 7, node=node
        )


def test_a_node_may_never_return(kube: Any, sink: Sink, tmp_path: Path) -> None:
    with Node("gpu-08", kube, tmp_path, sink.url, index=0, boot_seconds=0.2) as node:
        before = node.boot_id
        node.never_returns = True
        node.reboot()
        with pytest.raises(TimeoutError, match="gpu-08 is not up"):
            node.wait_ready(1.5)
        assert api_node(kube, "gpu-08")["status"]["nodeInfo"]["bootID"] == before
