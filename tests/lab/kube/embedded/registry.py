"""Which resources are served, and the traits that decide how each behaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.errors import Obj, qualified

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version; the traits are those of its registry strategy in kube-apiserver."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    keeps_status_on_create: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    custom: bool = False
    short: tuple[str, ...] = ()
    singular: str = ""
    definition_revision: str = ""
    schema: Obj | None = field(default=None, hash=False, compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def table(self) -> str:
        """Key of the stored objects: `pods`, `repairs.clusterwright.dev`."""
        return qualified(self.plural, self.group)


def _core(kind: str, plural: str, **traits: Any) -> Resource:
    return Resource("", "v1", kind, plural, **traits)


def _rbac(kind: str, plural: str, *, namespaced: bool) -> Resource:
    return Resource("rbac.authorization.k8s.io", "v1", kind, plural, namespaced=namespaced)


def _workload(kind: str, plural: str, short: str) -> Resource:
    return Resource("apps", "v1", kind, plural, status=True, generation=True, short=(short,))


BUILTIN = (
    _core("Namespace", "namespaces", namespaced=False, status=True, short=("ns",)),
    _core("Node", "nodes", namespaced=False, status=True, keeps_status_on_create=True, short=("no",)),
    _core("Pod", "pods", status=True, generation=True, returns_deleted=True, short=("po",)),
    _core("ConfigMap", "configmaps", short=("cm",)),
    _core("ResourceQuota", "resourcequotas", status=True, short=("quota",)),
    _core("Secret", "secrets"),
    _core("Service", "services", status=True, returns_deleted=True, short=("svc",)),
    _core("ServiceAccount", "serviceaccounts", returns_deleted=True, short=("sa",)),
    _core("Event", "events", short=("ev",)),
    _workload("Deployment", "deployments", "deploy"),
    _workload("ReplicaSet", "replicasets", "rs"),
    _workload("DaemonSet", "daemonsets", "ds"),
    _workload("StatefulSet", "statefulsets", "sts"),
    Resource("batch", "v1", "Job", "jobs", status=True, generation=True),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", status=True, generation=True,
             unconditional_update=False, short=("pdb",)),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", unconditional_update=False),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", generation=True),
    Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short=("pc",)),
    _rbac("Role", "roles", namespaced=True),
    _rbac("RoleBinding", "rolebindings", namespaced=True),
    _rbac("ClusterRole", "clusterroles", namespaced=False),
    _rbac("ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
             namespaced=False, status=True, generation=True, unconditional_update=False, short=("crd",)),
)  # fmt: skip

REVIEWS = (
    Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False),
    Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False),
)
"""Questions answered on POST and never stored."""


class Registry:
    """The served resources; custom ones come and go with their definitions."""

    def __init__(self) -> None:
        self._served = {(r.group, r.version, r.plural): r for r in (*BUILTIN, *REVIEWS)}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def of_kind(self, group: str, kind: str) -> Resource | None:
        return next((r for r in self._served.values() if (r.group, r.kind) == (group, kind)), None)

    def add(self, resource: Resource) -> None:
        self._served[(resource.group, resource.version, resource.plural)] = resource

    def drop(self, group: str, plural: str) -> None:
        for key in [k for k in self._served if (k[0], k[2]) == (group, plural)]:
            del self._served[key]

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def stored(self) -> list[Resource]:
        """One resource for every table, reviews left out."""
        return list({r.table: r for r in self if r not in REVIEWS}.values())
