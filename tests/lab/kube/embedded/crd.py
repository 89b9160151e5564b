"""CustomResourceDefinitions: served as soon as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kube.embedded.registry import Resource
from tests.lab.kube.embedded.state import State, stamp

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.storage import Event

TABLE = "customresourcedefinitions.apiextensions.k8s.io"


def follow(state: State, event: Event) -> None:
    """Listener of the store: serve what a definition defines and say so in its status."""
    if event.table != TABLE:
        return
    definition = state.store.get(TABLE, "", event.object["metadata"]["name"])
    if definition is None or event.type == "DELETED":
        _withdraw(state, event.object)
        return
    spec = definition["spec"]
    state.registry.drop(spec["group"], spec["names"]["plural"])
    for resource in _resources(definition):
        state.registry.add(resource)
    status = _status(state, definition)
    if status != definition.get("status"):
        state.store.put(TABLE, {**definition, "status": status})


def _withdraw(state: State, definition: Obj) -> None:
    spec = definition["spec"]
    table = f"{spec['names']['plural']}.{spec['group']}"
    for obj in state.store.all(table):
        state.store.remove(table, obj)
    state.registry.drop(spec["group"], spec["names"]["plural"])


def _resources(definition: Obj) -> list[Resource]:
    spec, names = definition["spec"], definition["spec"]["names"]
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            singular=names["singular"],
            short=tuple(names.get("shortNames") or ()),
            namespaced=spec["scope"] == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            generation=True,
            unconditional_update=False,
            custom=True,
            schema=version["schema"]["openAPIV3Schema"],
            definition_revision=str(definition["metadata"]["generation"]) + definition["metadata"]["uid"],
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _status(state: State, definition: Obj) -> Obj:
    spec, old = definition["spec"], definition.get("status") or {}
    told = {condition["type"]: condition for condition in old.get("conditions", [])}
    wanted = (("NamesAccepted", "NoConflicts", "no conflicts found"),
              ("Established", "InitialNamesAccepted", "the initial names have been accepted"))  # fmt: skip
    fresh = stamp(state.now())
    conditions = [
        told.get(kind)
        or {"type": kind, "status": "True", "lastTransitionTime": fresh, "reason": why, "message": text}
        for kind, why, text in wanted
    ]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    return {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored}
