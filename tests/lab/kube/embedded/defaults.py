"""Defaulting and admission of built-in kinds, as far as this project sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.kube.embedded.errors import Obj

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""Admission gives it to every new Node; whoever plays the kubelet and its controller takes it away."""

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


def _node(obj: Obj) -> Obj:
    spec = dict(obj.get("spec") or {})
    taints = spec.get("taints") or []
    if not any(taint["key"] == NOT_READY["key"] for taint in taints):
        spec["taints"] = [*taints, dict(NOT_READY)]
    return {**obj, "spec": spec}


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
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    tolerations = spec.get("tolerations", [])
    known = {toleration.get("key") for toleration in tolerations}
    added = [dict(toleration) for toleration in POD_TOLERATIONS if toleration["key"] not in known]
    spec |= {"serviceAccountName": account, "serviceAccount": account, "tolerations": [*tolerations, *added]}
    spec |= {"enableServiceLinks": spec.get("enableServiceLinks", True), "priority": spec.get("priority", 0)}
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


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


ON_CREATE: dict[str, Callable[[Obj], Obj]] = {
    "namespaces": _namespace,
    "nodes": _node,
    "pods": _pod,
    "secrets": _secret,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
    "deployments.apps": _template,
    "replicasets.apps": _template,
}


def on_create(table: str, obj: Obj) -> Obj:
    """A new object with what the server adds to it; its status is already reset."""
    return ON_CREATE.get(table, lambda same: same)(obj)


def on_write(table: str, obj: Obj) -> Obj:
    """Any written object in the form the server shows it."""
    if table == "nodes" and obj.get("spec", {}).get("unschedulable") is False:
        return {**obj, "spec": {key: value for key, value in obj["spec"].items() if key != "unschedulable"}}
    if table == "customresourcedefinitions.apiextensions.k8s.io":
        return _definition(obj)
    return obj
