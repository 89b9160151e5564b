"""What clients ask first: groups, versions, resources and their verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kube.embedded.registry import REVIEWS, Registry, Resource

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
VERSION = {
    "major": "1", "minor": "37", "gitVersion": "v1.37.2", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "embedded/python",
}  # fmt: skip
EXTRA = {
    "pods": (("pods/eviction", "Eviction", "policy", "v1"),),
    "serviceaccounts": (("serviceaccounts/token", "TokenRequest", "authentication.k8s.io", "v1"),),
}


def document(registry: Registry, path: str) -> Obj | None:
    """The discovery document at a path; None where there is none."""
    match [part for part in path.split("/") if part]:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = sorted({resource.group for resource in registry if resource.group})
            found = [_group(registry, group) for group in groups]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}
        case ["apis", group] if any(resource.group == group for resource in registry):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis", group, version]:
            return _resources(registry, group, version)
    return None


def _group(registry: Registry, group: str) -> Obj:
    versions = sorted({resource.version for resource in registry if resource.group == group})
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(registry: Registry, group: str, version: str) -> Obj | None:
    found = [resource for resource in registry if (resource.group, resource.version) == (group, version)]
    if not found:
        return None
    rows = [row for resource in found for row in _rows(resource)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": rows}


def _rows(resource: Resource) -> list[Obj]:
    row: Obj = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["create"] if resource in REVIEWS else VERBS,
    }
    if resource.short:
        row["shortNames"] = list(resource.short)
    rows = [row]
    if resource.status:
        status = {
            **row,
            "name": f"{resource.plural}/status",
            "singularName": "",
            "verbs": ["get", "patch", "update"],
        }
        status.pop("shortNames", None)
        rows.append(status)
    for name, kind, group, version in EXTRA.get(resource.table, ()):
        extra = {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["create"]}
        rows.append({**extra, "group": group, "version": version})
    return rows
