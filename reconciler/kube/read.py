"""Reads from Kubernetes: nodes, pods, budgets, repairs, leases, and token reviews.

Each read has three results: a value, None (or nothing) if the server says that the object does not exist, and
UnavailableError if nothing is known. Slow, down and forbidden are all "unknown", and on unknown the reconciler
does not act.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reconciler.kube import objects
from reconciler.kube.connection import REPAIRS, ApiResponse, Connection, Object, refused
from reconciler.kube.objects import Budget, Lease, Node, Pod

PAGE = 500
"""Objects per page of a long list; client-go's default."""

NODE_EXTRA = "authentication.kubernetes.io/node-name"
"""Holds the node of a token that is bound to a pod (Kubernetes 1.32 and later)."""


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Who a token belongs to. `node` is the node of the pod it is bound to, None for an unbound token."""

    username: str
    node: str | None
    audiences: tuple[str, ...]


class KubernetesReader:
    """Reads from the API server. Safe for many threads; every method raises UnavailableError."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def connect(cls, kubeconfig: Path | None, timeout_seconds: float) -> "KubernetesReader":
        """Return a reader; raises SettingsError if the kubeconfig cannot be used. Sends nothing yet."""
        return cls(Connection(kubeconfig, timeout_seconds))

    def nodes(self) -> tuple[Node, ...]:
        """Return every node."""
        return tuple(objects.node(raw) for raw in self._list("/api/v1/nodes"))

    def node(self, name: str) -> Node | None:
        """Return the node, None if it is not registered."""
        raw = self._get(f"/api/v1/nodes/{name}")
        return None if raw is None else objects.node(raw)

    def pods(self, node: str) -> tuple[Pod, ...]:
        """Return the pods that are bound to `node`, in all namespaces."""
        return tuple(
            objects.pod(raw) for raw in self._list("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
        )

    def budgets(self) -> tuple[Budget, ...]:
        """Return every PodDisruptionBudget."""
        return tuple(objects.budget(raw) for raw in self._list("/apis/policy/v1/poddisruptionbudgets"))

    def repairs(self) -> tuple[Object, ...]:
        """Return every Repair as stored; nothing while the resource is not defined yet."""
        return tuple(self._list(REPAIRS, missing_is_empty=True))

    def repair(self, name: str) -> Object | None:
        """Return the Repair as stored, None if there is none of that name."""
        return self._get(f"{REPAIRS}/{name}")

    def node_heartbeat(self, name: str) -> datetime | None:
        """Return when the node's kubelet last renewed its lease, by the kubelet's clock."""
        lease = self.lease("kube-node-lease", name)
        return None if lease is None else lease.renewed_at

    def lease(self, namespace: str, name: str) -> Lease | None:
        """Return the lease, None if there is none of that name."""
        raw = self._get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
        return None if raw is None else objects.lease(raw)

    def review_token(self, token: str, audience: str) -> TokenIdentity | None:
        """Return the identity of a token, None if the server does not accept it for `audience`."""
        if not token:
            return None
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        answer = self._connection.request("POST", path, body)
        if answer.status not in (200, 201):
            raise refused("POST", path, answer)
        return _identity(answer, audience)

    def _get(self, path: str) -> Object | None:
        answer = self._connection.request("GET", path)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise refused("GET", path, answer)
        return answer.body

    def _list(
        self, path: str, params: dict[str, str] | None = None, *, missing_is_empty: bool = False
    ) -> Iterator[Object]:
        token = ""
        while True:
            page = {**(params or {}), "limit": str(PAGE), **({"continue": token} if token else {})}
            answer = self._connection.request("GET", path, params=page)
            if answer.status == 404 and missing_is_empty:
                return
            if answer.status != 200:
                raise refused("GET", path, answer)
            yield from answer.body.get("items") or ()
            token = (answer.body.get("metadata") or {}).get("continue") or ""
            if not token:
                return


def _identity(answer: ApiResponse, audience: str) -> TokenIdentity | None:
    status = answer.body.get("status") or {}
    audiences = tuple(status.get("audiences") or ())
    if not status.get("authenticated") or audience not in audiences:
        return None
    user = status.get("user") or {}
    nodes = (user.get("extra") or {}).get(NODE_EXTRA) or (None,)
    return TokenIdentity(username=user.get("username") or "", node=nodes[0], audiences=audiences)
