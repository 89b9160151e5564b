"""The manifests, read without kustomize: for clusters that have an API server and no kubectl.

Follows the `resources` of each kustomization; what kustomize generates or patches is left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import yaml

Object = dict[str, Any]

BASE = Path(__file__).resolve().parents[2] / "manifests" / "base"

PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Namespace": "namespaces",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ServiceAccount": "serviceaccounts",
    "Deployment": "deployments",
    "DaemonSet": "daemonsets",
    "Service": "services",
    "NetworkPolicy": "networkpolicies",
}

IDENTITY = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
)
"""What programs that run outside the cluster need of it, in the order in which it can be created."""


class Server(Protocol):
    """The part of a lab API server that applying needs."""

    def request(
        self, method: str, path: str, body: Object | None, content_type: str, params: dict[str, str] | None
    ) -> tuple[int, Object]:
        """Send one request as administrator."""
        ...


def read(directory: Path = BASE) -> Iterator[Object]:
    """Yield every object under `directory` in the order of its kustomization."""
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text())
    for each in kustomization.get("resources", ()):
        path = directory / each
        if path.is_dir():
            yield from read(path)
        else:
            yield from yaml.safe_load_all(path.read_text())


def find(kind: str, name: str) -> Object:
    """Return one object of the base."""
    return next(each for each in read() if each["kind"] == kind and each["metadata"]["name"] == name)


def path_of(manifest: Object) -> str:
    """Return where the API serves the object."""
    version, metadata = manifest["apiVersion"], manifest["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{scope}/{PLURALS[manifest['kind']]}/{metadata['name']}"


def apply(server: Server, manifest: Object) -> Object:
    """Apply the object server-side and return what is stored."""
    params = {"fieldManager": "lab", "force": "true"}
    content_type = "application/apply-patch+yaml"
    status, answer = server.request("PATCH", path_of(manifest), manifest, content_type, params)
    if status not in (200, 201):
        raise RuntimeError(f"{path_of(manifest)}: {status} {answer.get('message')}")
    return answer


def apply_identities(server: Server) -> None:
    """Give the three programs their accounts and rights, and define the custom resource."""
    for manifest in sorted(
        (each for each in read() if each["kind"] in IDENTITY), key=lambda each: IDENTITY.index(each["kind"])
    ):
        apply(server, manifest)
