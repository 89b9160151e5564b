"""Pods of the lab: the agent's own and those of users, with owners that really exist.

A real garbage collector deletes a pod whose owner it cannot find, so every owner reference here names an
object that was made first, even though no controller works for it.
"""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

NAMESPACE = "clusterwright"
AGENT = "clusterwright-agent"
AGENT_LABELS = {"app.kubernetes.io/name": AGENT}
"""As in manifests/base/agent: a DaemonSet's selector cannot be changed afterwards."""
IMAGE = "registry.example.com/training:1"
ACCOUNT_SECONDS = 20.0
"""How long a new namespace may take to get its default ServiceAccount."""

Object = dict[str, Any]


def run_job(
    kube: "Kube", node: str, name: str, *, gpus: int = 8, namespace: str = "training",
    labels: dict[str, str] | None = None, empty_dir: bool = False,
) -> str:  # fmt: skip
    """Bind a pod of a Job to `node`, for its kubelet to run; returns the pod's name."""
    ensure_namespace(kube, namespace)
    marks = {"app": name, **(labels or {})}
    spec = _spec(gpus, empty_dir=empty_dir)
    kind = {"apiVersion": "batch/v1", "kind": "Job"}
    job = {**kind, "metadata": {"name": name, "labels": marks}, "spec": {"template": {"spec": spec}}}
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    owner = _existing(kube, jobs, name) or _made(kube, jobs, job)
    pod = f"{name}-0"
    _bind(
        kube,
        namespace,
        {"name": pod, "labels": marks, "ownerReferences": [reference(owner, kind)]},
        node,
        spec,
    )
    return pod


def run_bare(kube: "Kube", node: str, name: str, *, gpus: int = 0, namespace: str = "training") -> str:
    """Bind a pod that no controller would bring back; returns its name."""
    ensure_namespace(kube, namespace)
    _bind(kube, namespace, {"name": name, "labels": {"app": name}}, node, _spec(gpus, empty_dir=False))
    return name


def guard_pods(kube: "Kube", labels: dict[str, str], *, namespace: str = "training") -> str:
    """Have a budget that lets no pod with these labels go; returns its path."""
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": labels}}
    body = _named("policy/v1", "PodDisruptionBudget", "guard") | {"spec": spec}
    _made(kube, budgets, body)
    return f"{budgets}/guard"


def ensure_namespace(kube: "Kube", name: str) -> None:
    """Have a namespace; 409 says that it is there."""
    kube.request("POST", "/api/v1/namespaces", _named("v1", "Namespace", name))


def agent_daemonset(kube: "Kube") -> Object:
    """Return a reference to the agent's DaemonSet; makes it and its account when no manifest did."""
    kind = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    daemonsets = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
    found = _existing(kube, daemonsets, AGENT)
    if found is None:
        ensure_namespace(kube, NAMESPACE)
        account = _named("v1", "ServiceAccount", AGENT)
        kube.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
        template = {"metadata": {"labels": AGENT_LABELS}, "spec": _agent_spec()}
        spec = {"selector": {"matchLabels": AGENT_LABELS}, "template": template}
        found = _made(kube, daemonsets, {**kind, "metadata": {"name": AGENT}, "spec": spec})
    return reference(found, kind)


def agent_pod(name: str, node: str, owner: Object) -> Object:
    """Return the agent's pod on `node`, as its DaemonSet would make it."""
    meta = {"name": name, "namespace": NAMESPACE, "labels": AGENT_LABELS, "ownerReferences": [owner]}
    spec = {**_agent_spec(), "nodeName": node, "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def running(pod: Object) -> Object:
    """Return the status that a kubelet writes when all containers of `pod` have started."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    containers = [
        {"name": each["name"], "image": each["image"], "imageID": "", "ready": True, "restartCount": 0,
         "started": True, "state": {"running": {"startedAt": now}}}
        for each in pod["spec"]["containers"]
    ]  # fmt: skip
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in kinds],
        "containerStatuses": containers,
    }


def reference(owner: Object, kind: Object) -> Object:
    """Return the owner reference of a controller."""
    return {**kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}


def _named(version: str, kind: str, name: str) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def _agent_spec() -> Object:
    return {
        "serviceAccountName": AGENT,
        "automountServiceAccountToken": False,
        "containers": [{"name": "agent", "image": "clusterwright", "args": ["agent"]}],
    }


def _spec(gpus: int, *, empty_dir: bool) -> Object:
    container: Object = {"name": "main", "image": IMAGE}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: Object = {
        "restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container],
    }  # fmt: skip
    return {**spec, "volumes": [{"name": "scratch", "emptyDir": {}}]} if empty_dir else spec


def _existing(kube: "Kube", collection: str, name: str) -> Object | None:
    status, answer = kube.request("GET", f"{collection}/{name}")
    return answer if status == 200 else None


def _made(kube: "Kube", collection: str, body: Object) -> Object:
    status, answer = kube.request("POST", collection, body)
    if status == 409:
        status, answer = kube.request("GET", f"{collection}/{body['metadata']['name']}")
    if status not in (200, 201):
        raise OSError(f"{body['kind']} {body['metadata']['name']} was refused: {answer.get('message')}")
    return answer


def _bind(kube: "Kube", namespace: str, meta: Object, node: str, spec: Object) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": node}}
    until = time.monotonic() + ACCOUNT_SECONDS
    while True:
        status, answer = kube.request("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        if status == 201:
            return
        if status != 403 or "service account" not in answer.get("message", "") or time.monotonic() > until:
            raise OSError(f"pod {meta['name']} was refused with {status}: {answer.get('message')}")
        time.sleep(0.1)
