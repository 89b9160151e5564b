"""metadata.managedFields: who wrote which field last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.lab.kube.embedded import schema
from tests.lab.kube.embedded.fieldset import Comparison, Fields, Path, compare, decode, encode

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.registry import Resource
    from tests.lab.kube.embedded.state import Request

Name = tuple[str, str, str, str]
"""What makes an entry: manager, operation, apiVersion (empty for Apply) and subresource."""

FIRST = "before-first-apply"
"""Who is said to own what was there when an untracked object is applied to for the first time."""

_UNTRACKED = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
)
UNTRACKED: Fields = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _UNTRACKED)}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One manager's fields, the version they are written in, and when they last changed."""

    fields: Fields
    api_version: str
    time: str


Managers = dict[Name, Entry]


def managers_of(obj: Obj) -> Managers:
    """The entries of an object."""
    return {
        _name(item): Entry(decode(item.get("fieldsV1") or {}), item["apiVersion"], item.get("time", ""))
        for item in obj["metadata"].get("managedFields") or []
    }


def _name(item: Obj) -> Name:
    version = "" if item["operation"] == "Apply" else item["apiVersion"]
    return item["manager"], item["operation"], version, item.get("subresource", "")


def with_managers(obj: Obj, managers: Managers) -> Obj:
    """The object with these entries, in the server's order: Apply first, then by time."""
    items = []
    for (manager, operation, _, subresource), entry in managers.items():
        item: Obj = {
            "manager": manager,
            "operation": operation,
            "apiVersion": entry.api_version,
            "time": entry.time,
        }
        item |= {"fieldsType": "FieldsV1", "fieldsV1": encode(entry.fields)}
        items.append(item | ({"subresource": subresource} if subresource else {}))
    items.sort(key=lambda item: (item["operation"], item["time"], item["manager"]))
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta | ({"managedFields": items} if items else {})}


def untouched_by(request: Request) -> tuple[Path, ...]:
    """The parts of an object that a request's endpoint cannot write."""
    if request.subresource == "status":
        return (("f:spec",), ("f:metadata",)) if request.resource.custom else (("f:spec",),)
    return (("f:status",),) if request.resource.status else ()


def empty(resource: Resource) -> Obj:
    """The object a creation is compared with: Go's structs are there, a custom resource is blank."""
    return {} if resource.custom else {"metadata": {}, "spec": {}, "status": {}}


def recorded(request: Request, old: Obj | None, new: Obj, now: str) -> Obj:
    """The new object with the fields this write changed recorded for its manager.

    An object that had no managed field when it was created stays untracked until it is first applied to.
    """
    managers = managers_of(old) if old is not None else {}
    if old is not None and not managers:
        return with_managers(new, {})
    before = old if old is not None else empty(request.resource)
    difference = compare(schema.of(request.resource), before, new).without(untouched_by(request))
    version = request.resource.api_version
    name = (request.manager, "Update", version, request.subresource)
    written = frozenset(difference.added | difference.modified) - UNTRACKED
    kept = yielded(managers, difference)
    if written:
        mine = kept[name].fields if name in kept else frozenset()
        kept[name] = Entry(mine | written, version, now)
    return with_managers(new, kept)


def yielded(managers: Managers, difference: Comparison, *, keep: Name | None = None) -> Managers:
    """The entries without the fields that somebody else just changed or removed; emptied ones go."""
    lost = difference.added | difference.modified | difference.removed
    result = {
        name: entry if name == keep else replace(entry, fields=entry.fields - lost)
        for name, entry in managers.items()
    }
    return {name: entry for name, entry in result.items() if entry.fields or name == keep}
