"""Node lifecycle, taint eviction and pod garbage collection, as kube-controller-manager does them.

Switched on by `Kube.watch_nodes`. Kept from the real controllers (1.37):

- A node whose Lease is not renewed within the grace period gets conditions Unknown and a taint.
- The taint has the effect NoExecute only while some node is ready. When none is, the controller takes that
  for a fault of its own.
- A pod is deleted when it does not tolerate a NoExecute taint, or has tolerated it for as long as it may.
- Pods of a node that does not exist are deleted without their kubelet.

Left out: the rate of evictions, zones, and nodes that have never reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.delete import deleted
from tests.lab.kube.embedded.state import stamp

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.state import State

LEASES = "leases.coordination.k8s.io"
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
OURS = (UNREACHABLE, NOT_READY)
REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
STOPPED = "Kubelet stopped posting node status."


@dataclass(slots=True)
class NodeLifecycle:
    """One pass of all three controllers at a time. `grace_seconds` is node-monitor-grace-period."""

    state: State
    grace_seconds: float
    _beats: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Node → its last heartbeat and when it was first seen, by our own clock, as the controller does."""
    _missing: dict[str, float] = field(default_factory=dict)
    """Node that pods are bound to and that does not exist → since when."""

    def step(self, now: float) -> None:
        """Look at every node and pod once; `now` is in seconds of the monotonic clock."""
        nodes = self.state.store.all("nodes")
        for node in nodes:
            if self._is_silent(node, now):
                self._mark_unknown(node)
        nodes = self.state.store.all("nodes")
        alive = any(_ready(node) == "True" for node in nodes)
        for node in nodes:
            self._taint(node, evict=alive)
        self._evict_pods()
        self._collect_pods(now)

    def _is_silent(self, node: Obj, now: float) -> bool:
        name = node["metadata"]["name"]
        lease = self.state.store.get(LEASES, "kube-node-lease", name) or {}
        beat = (lease.get("spec") or {}).get("renewTime", "")
        if self._beats.get(name, ("", 0.0))[0] != beat:
            self._beats[name] = beat, now
        known, since = self._beats.get(name, ("", now))
        return bool(known) and now - since > self.grace_seconds

    def _mark_unknown(self, node: Obj) -> None:
        conditions = (node.get("status") or {}).get("conditions") or []
        if _ready(node) in ("", "Unknown"):
            return
        now = stamp(self.state.now())
        unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": STOPPED}
        changed = [
            {**each, **unknown, "lastTransitionTime": now} if each["type"] in REPORTED else each
            for each in conditions
        ]
        self.state.store.put("nodes", {**node, "status": {**node["status"], "conditions": changed}})
        for pod in self._pods_of(node["metadata"]["name"]):
            status = pod.get("status") or {}
            kept = [
                {**each, "status": "False", "lastTransitionTime": now} if each["type"] == "Ready" else each
                for each in status.get("conditions") or []
            ]
            self.state.store.put("pods", {**pod, "status": {**status, "conditions": kept}})

    def _taint(self, node: Obj, *, evict: bool) -> None:
        key = {"Unknown": UNREACHABLE, "False": NOT_READY}.get(_ready(node))
        before = node["spec"].get("taints") or []
        if not _ready(node):
            return
        wanted = [(key, "NoSchedule"), *([(key, "NoExecute")] if evict else [])] if key else []
        there = {(each["key"], each["effect"]) for each in before}
        kept = [each for each in before if each["key"] not in OURS or (each["key"], each["effect"]) in wanted]
        now = stamp(self.state.now())
        added = [
            {"key": key, "effect": effect, "timeAdded": now}
            for key, effect in wanted
            if (key, effect) not in there
        ]
        if added or len(kept) != len(before):
            spec = {key: value for key, value in node["spec"].items() if key != "taints"}
            taints = [*kept, *added]
            self.state.store.put("nodes", {**node, "spec": spec | ({"taints": taints} if taints else {})})

    def _evict_pods(self) -> None:
        for node in self.state.store.all("nodes"):
            taints = [each for each in node["spec"].get("taints") or [] if each["effect"] == "NoExecute"]
            for pod in self._pods_of(node["metadata"]["name"]) if taints else []:
                is_over = any(self._is_over(pod, taint) for taint in taints)
                if is_over and "deletionTimestamp" not in pod["metadata"]:
                    self._delete(pod)

    def _collect_pods(self, now: float) -> None:
        """Delete the pods of nodes that are missing for the grace period (the real quarantine is 40 s)."""
        names = {node["metadata"]["name"] for node in self.state.store.all("nodes")}
        bound = {pod["spec"].get("nodeName", "") for pod in self.state.store.all("pods")} - {""}
        self._missing = {name: self._missing.get(name, now) for name in bound - names}
        for name, since in self._missing.items():
            for pod in self._pods_of(name) if now - since > self.grace_seconds else []:
                self.state.store.remove("pods", pod)

    def _is_over(self, pod: Obj, taint: Obj) -> bool:
        """Whether the pod does not tolerate the taint, or has tolerated it for as long as it may."""
        fitting = [each for each in pod["spec"].get("tolerations") or [] if _tolerates(each, taint)]
        if not fitting:
            return True
        limits = [each["tolerationSeconds"] for each in fitting if "tolerationSeconds" in each]
        since = datetime.fromisoformat(taint["timeAdded"]).timestamp() if "timeAdded" in taint else 0.0
        return len(limits) == len(fitting) and self.state.now() - since >= min(limits)

    def _delete(self, pod: Obj) -> None:
        now = stamp(self.state.now())
        condition = {
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": now,
        }  # fmt: skip
        status = pod.get("status") or {}
        conditions = [*(status.get("conditions") or []), condition]
        pod = self.state.store.put("pods", {**pod, "status": {**status, "conditions": conditions}})
        resource = self.state.registry.of_kind("", "Pod")
        assert resource is not None
        marked, gone = deleted(self.state, resource, pod, {})
        if gone:
            self.state.store.remove("pods", marked)
        else:
            self.state.store.put("pods", marked)

    def _pods_of(self, node: str) -> list[Obj]:
        return [pod for pod in self.state.store.all("pods") if pod["spec"].get("nodeName") == node]


def _ready(node: Obj) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    return next((each["status"] for each in conditions if each["type"] == "Ready"), "")


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    exists = toleration.get("operator", "Equal") == "Exists"
    return exists or toleration.get("value", "") == taint.get("value", "")
