"""Defaulting and admission of built-in kinds, as far as this project sees them."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.kube.embedded.errors import Obj

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""Admission gives it to every new Node; whoever plays the kubelet and its controller takes it away."""

NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
"""Fields of status.nodeInfo, which Go always writes."""

POD_TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{why}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for why in ("not-ready", "unreachable")
]


def _namespace(obj: Obj) -> Obj:
    labels = {**obj["metadata"].get("labels", {}), "kubernetes.io/metadata.name": obj["metadata"]["name"]}
    metadata = {**obj["metadata"], "labels": labels}
    return {
        **obj,
        "metadata": metadata,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _admitted_node(obj: Obj) -> Obj:
    spec = dict(obj.get("spec") or {})
    taints = spec.get("taints") or []
    if not any(taint["key"] == NOT_READY["key"] for taint in taints):
        spec["taints"] = [*taints, dict(NOT_READY)]
    return {**obj, "spec": spec}


def _node(obj: Obj) -> Obj:
    spec = {
        key: value
        for key, value in (obj.get("spec") or {}).items()
        if (key, value) != ("unschedulable", False)
    }
    status = dict(obj.get("status") or {})
    if "capacity" in status:
        status["allocatable"] = status.get("allocatable", status["capacity"])
    status["daemonEndpoints"] = status.get("daemonEndpoints") or {"kubeletEndpoint": {"Port": 0}}
    status["nodeInfo"] = {**dict.fromkeys(NODE_INFO, ""), **status.get("nodeInfo", {})}
    return {**obj, "spec": spec, "status": status}


def _container(container: Obj) -> Obj:
    latest = container.get("image", "").rpartition(":")[2] in ("latest", container.get("image"))
    return {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
        **container,
    }


def _pod_spec(spec: Obj) -> Obj:
    defaults: Obj = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    return {**defaults, **spec, "containers": [_container(c) for c in spec.get("containers", [])]}


def _pod(obj: Obj) -> Obj:
    spec = _pod_spec(obj.get("spec") or {})
    spec["enableServiceLinks"] = spec.get("enableServiceLinks", True)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec |= {"serviceAccountName": account, "serviceAccount": account}
    return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _admitted_pod(obj: Obj) -> Obj:
    spec = dict(obj["spec"])
    account = spec.get("serviceAccountName", "default")
    tolerations = spec.get("tolerations", [])
    known = {toleration.get("key") for toleration in tolerations}
    added = [dict(toleration) for toleration in POD_TOLERATIONS if toleration["key"] not in known]
    spec |= {"serviceAccountName": account, "serviceAccount": account, "tolerations": [*tolerations, *added]}
    spec |= {"priority": spec.get("priority", 0)}
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return {**obj, "spec": spec}


def _secret(obj: Obj) -> Obj:
    return {**obj, "type": obj.get("type", "Opaque")}


def _definition(obj: Obj) -> Obj:
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind", "")
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {
        **obj,
        "spec": {**spec, "names": names, "conversion": spec.get("conversion", {"strategy": "None"})},
    }


def _template(obj: Obj) -> Obj:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    template = {
        **template,
        "metadata": template.get("metadata", {}),
        "spec": _pod_spec(template.get("spec") or {}),
    }
    return {**obj, "spec": {"replicas": 1, **spec, "template": template}}


_Change = Callable[[Obj], Obj]

DECODED: dict[str, _Change] = {
    "namespaces": _namespace,
    "pods": _pod,
    "secrets": _secret,
    "deployments.apps": _template,
    "replicasets.apps": _template,
}
ADMITTED: dict[str, _Change] = {"nodes": _admitted_node, "pods": _admitted_pod}
WRITTEN: dict[str, _Change] = {"nodes": _node, "customresourcedefinitions.apiextensions.k8s.io": _definition}


def decoded(table: str, obj: Obj) -> Obj:
    """A new object with its defaults, which count as its creator's fields; its status is already reset."""
    return DECODED[table](obj) if table in DECODED else obj


def admitted(table: str, obj: Obj) -> Obj:
    """A new object with what admission adds, which is nobody's."""
    return ADMITTED[table](obj) if table in ADMITTED else obj


def on_write(table: str, obj: Obj) -> Obj:
    """Any written object in the form the server shows it."""
    return WRITTEN[table](obj) if table in WRITTEN else obj
