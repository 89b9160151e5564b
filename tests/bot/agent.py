"""A node of the cluster and what its agent says, as the tests of processes play it."""

import time

from checks.finding import Action, Finding, Severity
from checks.report import AUDIENCE, Inventory, NodeReport
from tests.lab.kube.kube import Kube
from tests.lab.pods import agent_daemonset, agent_pod

POOL_LABELS = {"clusterwright.dev/pool": "h100"}
BOOT = "11111111-1111-4111-8111-111111111111"
NEXT_BOOT = "22222222-2222-4222-8222-222222222222"
GPU = "0000:1b:00.0"


def reboot_required(count: int = 1) -> Finding:
    """A fault whose first answer is a reboot."""
    return Finding(
        check="xid", subsystem="xid", code="154", severity=Severity.CRITICAL, action=Action.REBOOT, gpu=GPU,
        count=count, first_seen=1_796_000_000.0, last_seen=1_796_000_000.0,
        summary="the driver asks for a reboot of the node",
        evidence="NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed to Node Reboot Required",
    )  # fmt: skip


def gpu_lost() -> Finding:
    """A fault that calls for another node."""
    return Finding(
        check="xid", subsystem="xid", code="79", severity=Severity.CRITICAL, action=Action.FAILOVER,
        gpu="0000:5d:00.0", first_seen=1_796_000_100.0, last_seen=1_796_000_100.0,
        summary="GPU has fallen off the bus",
    )  # fmt: skip


class Agent:
    """One node of the cluster and what its agent says."""

    def __init__(self, kube: Kube, name: str, boot_id: str = BOOT) -> None:
        self.kube, self.name, self.boot_id, self.sequence = kube, name, boot_id, 0
        node = {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": POOL_LABELS},
        }  # fmt: skip
        status, made = kube.request("POST", "/api/v1/nodes", node)
        assert status == 201, made
        self.uid: str = made["metadata"]["uid"]
        self.boot(boot_id)
        self.token = self._token()

    def boot(self, boot_id: str) -> None:
        """Have the kubelet report a boot; the node is Ready with 8 GPUs."""
        self.boot_id, self.sequence = boot_id, 0
        status = {
            "capacity": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": boot_id},
        }
        path = f"/api/v1/nodes/{self.name}/status"
        code, answer = self.kube.request("PATCH", path, {"status": status}, "application/merge-patch+json")
        assert code == 200, answer

    def report(self, *findings: Finding, node: str = "", sequence: int | None = None) -> NodeReport:
        """Return the next report."""
        self.sequence += 1
        return NodeReport(
            node=node or self.name, boot_id=self.boot_id,
            sequence=self.sequence if sequence is None else sequence,
            sent_at=time.time(), agent_version="0.1.0", inventory=Inventory(gpus=()),
            findings=findings, blind_spots=(),
        )  # fmt: skip

    def _token(self) -> str:
        name = f"agent-{self.name}"
        pod = agent_pod(name, self.name, agent_daemonset(self.kube))
        status, made = self.kube.request("POST", "/api/v1/namespaces/clusterwright/pods", pod)
        assert status == 201, made
        return self.kube.token(
            "clusterwright", "clusterwright-agent", (AUDIENCE,), (name, made["metadata"]["uid"])
        )
