"""Kubernetes objects as values: nodes, pods, budgets and leases, with only the fields that we use.

Pure: raw JSON objects in, frozen values out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

GPU_RESOURCE = "nvidia.com/gpu"
"""Extended resource that NVIDIA's device plugin advertises."""

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Marks the mirror pod of a static pod; it cannot be evicted."""

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint as written on a node; `time_added` is set by the control plane, otherwise empty."""

    key: str
    value: str
    effect: str
    time_added: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `boot_id` is what its kubelet reported; `gpus` counts capacity, not what is free.

    `cordoned_by` is the field manager that last changed `unschedulable`, empty if unknown.
    """

    name: str
    uid: str
    boot_id: str
    ready: bool
    unschedulable: bool
    taints: tuple[Taint, ...]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    gpus: int
    resource_version: str
    cordoned_by: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod on a node. `controller` is `Kind/name` of its controlling owner, None for a bare pod."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    labels: Mapping[str, str]
    controller: str | None
    mirror: bool
    gpus: int
    empty_dir: bool
    terminating: bool

    @property
    def evictable(self) -> bool:
        """Whether a drain evicts it: not a DaemonSet pod, not a mirror pod, not completed."""
        daemon = self.controller is not None and self.controller.startswith("DaemonSet/")
        return not (daemon or self.mirror or self.phase in ("Succeeded", "Failed"))


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget: which pods it covers and how many of them may be evicted now."""

    namespace: str
    name: str
    selector: Object
    disruptions_allowed: int

    def covers(self, pod: Pod) -> bool:
        """Whether the budget's selector matches the pod (an empty selector matches its whole namespace)."""
        if pod.namespace != self.namespace:
            return False
        labels: Mapping[str, str] = self.selector.get("matchLabels") or {}
        if any(pod.labels.get(key) != value for key, value in labels.items()):
            return False
        return all(
            _expression_matches(each, pod.labels) for each in self.selector.get("matchExpressions") or ()
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease; `holder` is empty if nobody holds it. `renewed_at` is by the holder's clock."""

    holder: str
    renewed_at: datetime | None
    resource_version: str


def node(raw: Object) -> Node:
    """Return the node in `raw`."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return Node(
        name=meta["name"],
        uid=meta["uid"],
        boot_id=(status.get("nodeInfo") or {}).get("bootID", ""),
        ready=conditions.get("Ready") == "True",
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple(_taint(each) for each in spec.get("taints") or ()),
        labels=meta.get("labels") or {},
        annotations=meta.get("annotations") or {},
        gpus=int((status.get("capacity") or {}).get(GPU_RESOURCE, 0)),
        resource_version=meta["resourceVersion"],
        cordoned_by=_manager_of(meta, "f:spec", "f:unschedulable"),
    )


def pod(raw: Object) -> Pod:
    """Return the pod in `raw`."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    owners = [o for o in meta.get("ownerReferences") or () if o.get("controller")]
    limits = [(c.get("resources") or {}).get("limits") or {} for c in spec.get("containers") or ()]
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        labels=meta.get("labels") or {},
        controller=f"{owners[0]['kind']}/{owners[0]['name']}" if owners else None,
        mirror=MIRROR_ANNOTATION in (meta.get("annotations") or {}),
        gpus=sum(int(each.get(GPU_RESOURCE, 0)) for each in limits),
        empty_dir=any("emptyDir" in volume for volume in spec.get("volumes") or ()),
        terminating=bool(meta.get("deletionTimestamp")),
    )


def budget(raw: Object) -> Budget:
    """Return the PodDisruptionBudget in `raw`."""
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    return Budget(
        namespace=meta["namespace"],
        name=meta["name"],
        selector=spec.get("selector") or {},
        disruptions_allowed=int(status.get("disruptionsAllowed") or 0),
    )


def lease(raw: Object) -> Lease:
    """Return the lease in `raw`."""
    spec = raw.get("spec") or {}
    renewed = spec.get("renewTime")
    return Lease(
        holder=spec.get("holderIdentity") or "",
        renewed_at=datetime.fromisoformat(renewed) if renewed else None,
        resource_version=raw["metadata"]["resourceVersion"],
    )


def _taint(raw: Object) -> Taint:
    return Taint(raw["key"], raw.get("value") or "", raw["effect"], raw.get("timeAdded") or "")


def _manager_of(meta: Object, *field: str) -> str:
    """Return the manager of a field by `managedFields`; `fieldsV1` nests one level for each part of the path."""
    for entry in meta.get("managedFields") or ():
        inner: Any = entry.get("fieldsV1") or {}
        for part in field:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if inner is not None:
            return str(entry.get("manager") or "")
    return ""


def _expression_matches(expression: Object, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
