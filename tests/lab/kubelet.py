"""A simulated kubelet: what a node's own agent of Kubernetes does to the API.

Kept from the real kubelet: it registers the node and takes the not-ready taint off again, renews a Lease
every few seconds, writes its status when Kubernetes shows another one, runs pods that are bound to its node,
and confirms the end of pods that are being deleted. A node without power does none of these. The lab runs no
DaemonSet controller, so each node makes its own agent pod.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checks.report import AUDIENCE
from tests.lab.pods import AGENT, NAMESPACE, agent_daemonset, agent_pod, ensure_namespace, running

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

HEARTBEAT_SECONDS = 2.0
STATUS_SECONDS = 4.0
"""How often a kubelet looks whether Kubernetes shows what it last said; a real one does every 10 s."""
TERMINATE_SECONDS = 0.8
"""How long a pod takes to stop: SIGTERM, flush, gone."""
TOKEN_SECONDS = 3600
LEASE_SECONDS = 40
"""A kubelet's own nodeLeaseDurationSeconds."""
NOT_READY = "node.kubernetes.io/not-ready"
MERGE = "application/merge-patch+json"
Object = dict[str, Any]


@dataclass(slots=True)
class Hardware:
    """What a kubelet finds on its node when it starts."""

    gpus: int
    boot_id: str


class Kubelet:
    """The kubelet of one node. `start` and `stop` follow the power of the node; `step` does the work."""

    def __init__(self, kube: "Kube", name: str, labels: Mapping[str, str], token_file: Path) -> None:
        self.kube = kube
        self.name = name
        self.labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
        self.token_file = token_file
        self.policy_dir = token_file.with_name("checks")
        self.hardware = Hardware(gpus=0, boot_id="")
        self.up = False
        self.agent_uid = ""
        self._told: tuple[int, str] | None = None
        self._renew_at = 0.0
        self._compare_at = 0.0
        self._token_at = 0.0
        self._terminating: dict[str, float] = {}

    @property
    def ready(self) -> bool:
        """Whether Kubernetes knows of this boot and the agent has a token."""
        return self.up and self._told == (self.hardware.gpus, self.hardware.boot_id) and self._token_at > 0.0

    def start(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self._renew_at = 0.0
        self.up = True

    def stop(self) -> None:
        self.up = False
        self._told = None

    def mount(self, policies: Mapping[str, str]) -> None:
        """Show the agent the ConfigMap with the policies of its checks; a file is replaced in one step."""
        self.policy_dir.mkdir(exist_ok=True)
        for name, text in policies.items():
            file = self.policy_dir / name
            if not file.exists() or file.read_text() != text:
                fresh = file.with_suffix(".new")
                fresh.write_text(text)
                fresh.replace(file)

    def step(self, pods: list[Object], now: float) -> None:
        """Do what is due: report the status, renew the Lease, run pods and confirm those that have ended."""
        told = (self.hardware.gpus, self.hardware.boot_id)
        if self._told != told:
            self._register()
            self._report_status()
            self._told = told
            self._compare_at = now + STATUS_SECONDS
        elif now >= self._compare_at:
            self._compare_status()
            self._compare_at = now + STATUS_SECONDS
        if now >= self._renew_at:
            self._renew_lease()
            self._renew_at = now + HEARTBEAT_SECONDS
        self._keep_agent(pods, now)
        for pod in pods:
            self._sync(pod, now)
        alive = {pod["metadata"]["uid"] for pod in pods}
        self._terminating = {uid: at for uid, at in self._terminating.items() if uid in alive}

    def _register(self) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        status, _ = self.kube.request("POST", "/api/v1/nodes", body)
        if status == 409:
            self.kube.request("PATCH", self._path, {"metadata": {"labels": self.labels}}, MERGE)

    def _report_status(self) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        reasons = {
            "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID"),
            "Ready": ("True", "KubeletReady"),
        }
        conditions = [
            {"type": each, "status": status, "reason": reason, "message": "kubelet is posting its status",
             "lastHeartbeatTime": now, "lastTransitionTime": now}
            for each, (status, reason) in reasons.items()
        ]  # fmt: skip
        room = {"cpu": "192", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": str(self.hardware.gpus)}
        info = {
            "machineID": self.name, "systemUUID": self.name, "bootID": self.hardware.boot_id,
            "kernelVersion": "6.8.0-60-generic", "osImage": "Ubuntu 24.04.3 LTS",
            "containerRuntimeVersion": "containerd://2.1.4", "kubeletVersion": "v1.37.2",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
        }  # fmt: skip
        body = {"status": {"capacity": room, "allocatable": room, "conditions": conditions, "nodeInfo": info}}
        status, answer = self.kube.request("PATCH", f"{self._path}/status", body, MERGE)
        if status == 200:
            self._untaint(answer)
        else:
            raise OSError(f"status of node {self.name} was refused with {status}: {answer.get('message')}")

    def _compare_status(self) -> None:
        """Say again that the node is ready when Kubernetes has come to doubt it."""
        _, node = self.kube.request("GET", self._path)
        conditions = (node.get("status") or {}).get("conditions") or []
        if {each["status"] for each in conditions if each["type"] == "Ready"} != {"True"}:
            self._report_status()

    def _untaint(self, node: Object) -> None:
        """Take only the not-ready taint off; written with the version read, so a rival's mark stays."""
        for _ in range(5):
            taints = node["spec"].get("taints") or []
            kept = [taint for taint in taints if taint["key"] != NOT_READY]
            if len(kept) == len(taints):
                return
            version = node["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "spec": {"taints": kept or None}}
            if self.kube.request("PATCH", self._path, body, MERGE)[0] == 200:
                return
            node = self.kube.request("GET", self._path)[1]

    def _renew_lease(self) -> None:
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        renewed = {"renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        status, _ = self.kube.request("PATCH", f"{leases}/{self.name}", {"spec": renewed}, MERGE)
        if status == 404:
            spec = {"holderIdentity": self.name, "leaseDurationSeconds": LEASE_SECONDS, **renewed}
            kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            lease = {**kind, "metadata": {"name": self.name}, "spec": spec}
            if self.kube.request("POST", leases, lease)[0] == 404:
                ensure_namespace(self.kube, "kube-node-lease")
                self._renew_at = 0.0

    def _keep_agent(self, pods: list[Object], now: float) -> None:
        """Have an agent pod, and a token bound to it on the node's disk before the old one ends."""
        name = f"{AGENT}-{self.name}"
        alive = {pod["metadata"]["uid"] for pod in pods if pod["metadata"]["name"] == name}
        if self.agent_uid not in alive:
            self.agent_uid = next(iter(alive), "") or self._make_agent_pod(name)
            self._token_at = 0.0
        if now >= self._token_at:
            pod = (name, self.agent_uid)
            token = self.kube.token(NAMESPACE, AGENT, audiences=(AUDIENCE,), pod=pod, seconds=TOKEN_SECONDS)
            fresh = self.token_file.with_suffix(".new")
            fresh.write_text(token)
            fresh.chmod(0o600)
            fresh.replace(self.token_file)
            self._token_at = now + 0.8 * TOKEN_SECONDS

    def _make_agent_pod(self, name: str) -> str:
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        owner = agent_daemonset(self.kube)
        status, answer = self.kube.request("POST", pods, agent_pod(name, self.name, owner))
        if status == 409:
            status, answer = self.kube.request("GET", f"{pods}/{name}")
        if status not in (200, 201):
            raise OSError(f"agent pod {name} was refused with {status}: {answer.get('message')}")
        return str(answer["metadata"]["uid"])

    def _sync(self, pod: Object, now: float) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta.get("deletionTimestamp"):
            if now - self._terminating.setdefault(meta["uid"], now) >= TERMINATE_SECONDS:
                options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
                kind = {"apiVersion": "v1", "kind": "DeleteOptions"}
                self.kube.request("DELETE", path, {**kind, **options})
        elif (pod.get("status") or {}).get("phase", "Pending") == "Pending":
            self.kube.request("PATCH", f"{path}/status", {"status": running(pod)}, MERGE)

    @property
    def _path(self) -> str:
        return f"/api/v1/nodes/{self.name}"
