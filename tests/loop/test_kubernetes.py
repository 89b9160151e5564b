"""Kubernetes at its worst in the middle of the loop: the node is repaired once, or held, and never twice."""

from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.kube.embedded_kube import EmbeddedKube
from tests.lab.kube.fixture import require_real
from tests.lab.pods import guard_pods, run_job
from tests.lab.wiring import Timing
from tests.loop.driving import approve, assert_repaired_once, closed, open_thread

NODE = "/api/v1/nodes/gpu-01"
POD = "/api/v1/namespaces/training/pods/train-0"
UNREACHABLE = {"node.kubernetes.io/unreachable"}


def test_a_slow_and_broken_connection_delays_a_repair_and_no_more(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1, unreliable=True) as cluster:
        run_job(cluster.kube, "gpu-01", "train")
        approve(cluster, open_thread(cluster, "gpu-01"))
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")
        assert cluster.connection.cuts > 0


def test_answers_that_hide_what_was_done_are_looked_into(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        assert isinstance(cluster.kube, EmbeddedKube)
        faults = cluster.kube.faults
        run_job(cluster.kube, "gpu-01", "train")
        message = open_thread(cluster, "gpu-01")
        reconciler = "system:serviceaccount:clusterwright:clusterwright-reconciler"
        faults.fail(method="PATCH", path=NODE, user=reconciler, carried_out=True)
        faults.fail(method="PATCH", path=NODE, user=reconciler)
        faults.throttle(method="POST", path=f"{POD}/eviction", times=2)
        faults.fail(method="POST", path=f"{POD}/eviction", carried_out=True)
        faults.throttle(method="GET", path="/apis/clusterwright.dev", user=reconciler, times=2)
        approve(cluster, message)
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")
        assert faults.left == 0


def test_a_node_that_becomes_unreachable_during_its_reset_is_repaired_all_the_same(tmp_path: Path) -> None:
    require_real()
    slow = Timing(boot_seconds=9.0, node_grace_seconds=4.0)
    with Cluster(tmp_path, nodes=2, kubernetes="real", timing=slow) as cluster:
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the taints", lambda: _taints(cluster) >= {("NoSchedule", *UNREACHABLE)})
        cluster.wait("NoExecute", lambda: ("NoExecute", *UNREACHABLE) in _taints(cluster))
        assert _ready(cluster) == "Unknown"
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")
        cluster.wait("no taints", lambda: not _taints(cluster))
        assert _ready(cluster) == "True"


def test_a_pod_whose_end_nobody_confirms_holds_the_repair_before_its_reset(tmp_path: Path) -> None:
    timing = Timing(node_grace_seconds=600.0)
    timing = Timing(node_grace_seconds=600.0, policy={**timing.policy, "drainTimeout": "6s"})
    with Cluster(tmp_path, nodes=1, timing=timing) as cluster:
        run_job(cluster.kube, "gpu-01", "train")
        guard = guard_pods(cluster.kube, {"app": "train"})
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the drain", lambda: cluster.step("gpu-01") == "drain")
        cluster.node("gpu-01").stop_kubelet()
        assert cluster.kube.request("DELETE", guard)[0] == 200
        outcome = cluster.wait("the outcome", lambda: cluster.record("gpu-01", "outcome-1.yaml"))
        assert outcome["phase"] == "Held"
        assert "deletionTimestamp" in cluster.kube.request("GET", POD)[1]["metadata"]
        assert cluster.bmc.reset_posts("gpu-01") == 0


def _taints(cluster: Cluster) -> set[tuple[str, str]]:
    found = cluster.kubernetes_node("gpu-01")["spec"].get("taints", [])
    return {(each["effect"], each["key"]) for each in found if "clusterwright" not in each["key"]}


def _ready(cluster: Cluster) -> str:
    conditions = cluster.kubernetes_node("gpu-01")["status"]["conditions"]
    return next(each["status"] for each in conditions if each["type"] == "Ready")
