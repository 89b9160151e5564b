"""Writes to Kubernetes: the only verbs that change the cluster.

Each verb sends one request, never repeats it, and returns the result as a value. UnavailableError means that
the result is unknown: the caller reads the cluster before it tries again. Marks carry the action id, and an
action removes only its own marks.
"""

import re
from datetime import UTC, datetime
from typing import Any

from reconciler.kube.connection import REPAIRS, ApiResponse, Connection, Object, refused
from reconciler.kube.objects import Lease, Node, Pod, Taint
from reconciler.kube.results import (
    CORDONED_BY,
    FIELD_MANAGER,
    TAINT,
    Conflict,
    Evicted,
    EvictionBlocked,
    PodGone,
    Stored,
)

LEASE_SECONDS = 60
"""Duration of a lease. Expiry shows that nobody works on the node; it gives nobody else the lease."""

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class KubernetesWriter:
    """Writes to the API server. Safe for many threads; every verb may raise UnavailableError."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def cordon(self, node: Node, action_id: str) -> Stored | Conflict:
        """Taint the node and make it unschedulable; claim the cordon only if it is ours.

        It replaces the marks of an earlier action, which the caller knows to have ended.
        """
        ours = not node.unschedulable or (CORDONED_BY in node.annotations and _undisputed(node))
        taints = [each for each in node.taints if each.key != TAINT]
        patch: Object = {"spec": {"unschedulable": True, "taints": _raw([*taints, _our_taint(action_id)])}}
        if ours:
            patch["metadata"] = {"annotations": {CORDONED_BY: action_id}}
        return self._patch_node(node, patch)

    def uncordon(self, node: Node, action_id: str) -> Stored | Conflict:
        """Remove the taint of `action_id`, and make the node schedulable if that action cordoned it.

        If somebody else has cordoned the node since, by `managedFields`, it stays unschedulable.
        """
        taints = [each for each in node.taints if not (each.key == TAINT and each.value == action_id)]
        patch: Object = {"spec": {"taints": _raw(taints) or None}}
        if node.annotations.get(CORDONED_BY) == action_id:
            patch["metadata"] = {"annotations": {CORDONED_BY: None}}
            if _undisputed(node):
                patch["spec"]["unschedulable"] = None
        return self._patch_node(node, patch)

    def evict(self, pod: Pod) -> Evicted | EvictionBlocked | PodGone:
        """Evict exactly this pod (by UID), honouring PodDisruptionBudgets."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        answer = self._connection.request("POST", path, body)
        if answer.status in (200, 201):
            return Evicted()
        if answer.status in (404, 409):
            return PodGone()
        blocked = _blocked(answer)
        if blocked is None:
            raise refused("POST", path, answer)
        return blocked

    def hold_lease(self, name: str, lease: Lease | None, holder: str, now: datetime) -> Stored | Conflict:
        """Take or renew a lease as read; the caller knows that nobody else holds it."""
        renewed = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed}
        if lease is None:
            metadata = {"name": name, "namespace": self._namespace}
            kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            body: Object = {**kind, "metadata": metadata, "spec": spec}
            return self._write("POST", self._leases, body)
        patch = {"metadata": {"resourceVersion": lease.resource_version}, "spec": spec}
        return self._write("PATCH", f"{self._leases}/{name}", patch, MERGE_PATCH)

    def release_lease(self, name: str, lease: Lease) -> Stored | Conflict:
        """Clear the holder of a lease if it has not changed since it was read."""
        patch = {"metadata": {"resourceVersion": lease.resource_version}, "spec": {"holderIdentity": None}}
        return self._write("PATCH", f"{self._leases}/{name}", patch, MERGE_PATCH)

    def create_repair(self, name: str, spec: Object) -> Stored | Conflict:
        """Create the Repair; Conflict means that it exists already."""
        body = {
            "apiVersion": "clusterwright.dev/v1alpha1",
            "kind": "Repair",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self._write("POST", REPAIRS, body)

    def write_status(self, name: str, resource_version: str, status: Object) -> Stored | Conflict:
        """Update the Repair's status if nobody wrote it since `resource_version`; None removes a field."""
        patch = {"metadata": {"resourceVersion": resource_version}, "status": status}
        return self._write("PATCH", f"{REPAIRS}/{name}/status", patch, MERGE_PATCH)

    def apply_crd(self, crd: Object) -> None:
        """Apply a CustomResourceDefinition server-side, taking over fields that others set."""
        path = f"{CRDS}/{crd['metadata']['name']}"
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        answer = self._connection.request("PATCH", path, crd, params, APPLY_PATCH)
        if answer.status not in (200, 201):
            raise refused("PATCH", path, answer)

    def apply_config_map(self, config_map: Object) -> None:
        """Apply a ConfigMap of our namespace server-side, taking over fields that others set."""
        path = f"/api/v1/namespaces/{self._namespace}/configmaps/{config_map['metadata']['name']}"
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        answer = self._connection.request("PATCH", path, config_map, params, APPLY_PATCH)
        if answer.status not in (200, 201):
            raise refused("PATCH", path, answer)

    def _patch_node(self, node: Node, patch: Object) -> Stored | Conflict:
        patch.setdefault("metadata", {})["resourceVersion"] = node.resource_version
        return self._write("PATCH", f"/api/v1/nodes/{node.name}", patch, MERGE_PATCH)

    def _write(
        self, method: str, path: str, body: Object, content_type: str = "application/json"
    ) -> Stored | Conflict:
        params = {"fieldManager": FIELD_MANAGER}
        answer = self._connection.request(method, path, body, params, content_type)
        if answer.status in (200, 201):
            return Stored(answer.body["metadata"]["resourceVersion"])
        if answer.status == 409 or (answer.status == 404 and method == "PATCH"):
            return Conflict(answer.message)
        raise refused(method, path, answer)


def _undisputed(node: Node) -> bool:
    return node.cordoned_by in ("", FIELD_MANAGER)


def _our_taint(action_id: str) -> Taint:
    return Taint(TAINT, action_id, "NoSchedule")


def _raw(taints: list[Taint]) -> list[dict[str, Any]]:
    """Return all taints for a patch: a node's taints are one atomic list."""
    return [
        {
            "key": each.key,
            "effect": each.effect,
            **({"value": each.value} if each.value else {}),
            **({"timeAdded": each.time_added} if each.time_added else {}),
        }
        for each in taints
    ]


def _blocked(answer: ApiResponse) -> EvictionBlocked | None:
    """Return what blocks an eviction, None if the response has another reason.

    A budget that blocks gives 429 with the cause `DisruptionBudget`; two budgets for one pod give 500.
    """
    causes = (answer.body.get("details") or {}).get("causes") or ()
    texts = [str(each.get("message") or "") for each in causes if each.get("reason") == "DisruptionBudget"]
    if answer.status == 429 and texts:
        named = [found[1] for text in texts if (found := re.search(r"disruption budget (\S+)", text))]
        return EvictionBlocked(" ".join(texts), tuple(named))
    if answer.status == 500 and "more than one PodDisruptionBudget" in answer.message:
        return EvictionBlocked(answer.message, ())
    return None
