"""Server-side apply: merge what a manager wants, take nothing from others, drop what it no longer wants."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.lab.kube.embedded import managed, openapi, schema, write
from tests.lab.kube.embedded.errors import ApiError, Obj, bad_request, conflict, invalid
from tests.lab.kube.embedded.fieldset import (
    Comparison,
    Fields,
    Path,
    children,
    compare,
    fields_of,
    item_element,
    leaf,
    readable,
    with_parents,
)
from tests.lab.kube.embedded.managed import Entry, Managers, Name
from tests.lab.kube.embedded.schema import ANY, Type
from tests.lab.kube.embedded.state import Request, State, stamp


def apply(state: State, request: Request, body: Obj) -> tuple[Obj, bool]:
    """Apply a configuration; returns the object and whether it is new.

    Raises:
        ApiError: 409 with FieldManagerConflict causes, 400 and 422 for a bad body, 500 for an unknown field.
    """
    _check(request, body)
    config = {**body, "metadata": {**body["metadata"]}}
    old = state.store.get(request.resource.table, request.namespace, request.name)
    if old is not None:
        return _onto(state, request, old, write.typed(request, config, request.name)), False
    if config["metadata"].get("uid"):
        uid = config["metadata"]["uid"]
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(request.resource.plural, request.resource.group, request.name, why)
    config["metadata"].setdefault("name", request.name)
    return write.create(state, request, config, record=_created), True


def _check(request: Request, body: Any) -> None:
    if not request.query.get("fieldManager"):
        cause = ("fieldManager", "FieldValueRequired", "Required value: is required for apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
    if not isinstance(body, dict) or not body.get("kind") or not body.get("apiVersion"):
        raise bad_request("invalid object type: an applied configuration names its apiVersion and kind")
    if (body.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    body.setdefault("metadata", {})
    unknown = openapi.unknown if request.resource.custom else schema.unknown
    if lost := next(iter(unknown(request.resource, body)), None):
        what = f"{request.namespace}/{request.name}; {body['apiVersion']}, Kind={body['kind']}"
        message = f"failed to create typed patch object ({what}): {lost}: field not declared in schema"
        raise ApiError(500, "", message)


def _wanted(request: Request, config: Obj) -> Fields:
    """The fields a configuration claims through this endpoint."""
    outside = managed.untouched_by(request)
    found = fields_of(schema.of(request.resource), config) - managed.UNTRACKED
    return frozenset(path for path in found if not any(path[: len(part)] == part for part in outside))


def _name(request: Request) -> Name:
    return request.manager, "Apply", "", request.subresource


def _created(request: Request, _: Obj | None, new: Obj, now: str) -> Obj:
    wanted = _wanted(request, new)
    entry = Entry(wanted, request.resource.api_version, now)
    return managed.with_managers(new, {_name(request): entry} if wanted else {})


def _onto(state: State, request: Request, old: Obj, config: Obj) -> Obj:
    kind, name, now = schema.of(request.resource), _name(request), stamp(state.now())
    managers = managed.managers_of(old) or _before_first(request, old, now)
    last = managers.get(name, Entry(frozenset(), "", ""))
    wanted = _wanted(request, config)
    managers[name] = Entry(wanted, request.resource.api_version, last.time or now)
    held = {path for entry in managers.values() for path in entry.fields} | fields_of(kind, config)
    lost = with_parents(kind, last.fields) - with_parents(kind, held)
    new = _without(kind, _merged(kind, old, config), frozenset(lost)) or {}
    new = write.prepared(request, old, new)
    difference = compare(kind, old, new).without(
        (*managed.untouched_by(request), ("f:metadata", "f:managedFields"))
    )
    _refuse_conflicts(request, managers, difference)
    managers = managed.yielded(managers, difference, keep=name)
    if difference.added or difference.modified or difference.removed or not last.time:
        managers[name] = Entry(wanted, request.resource.api_version, now)
    if not wanted:
        del managers[name]
    asked = {key: config["metadata"][key] for key in ("uid", "resourceVersion") if key in config["metadata"]}
    new = {**new, "metadata": {**new["metadata"], **asked}}
    return write.commit(state, request, old, new, record=partial(_applied, managers))


def _applied(managers: Managers, _: Request, __: Obj | None, new: Obj, ___: str) -> Obj:
    return managed.with_managers(new, managers)


def _before_first(request: Request, old: Obj, now: str) -> Managers:
    """Entries of an untracked object: all it has belongs to whoever was there before."""
    difference = compare(schema.of(request.resource), managed.empty(request.resource), old)
    found = frozenset(difference.without(managed.untouched_by(request)).added) - managed.UNTRACKED
    version = request.resource.api_version
    return {(managed.FIRST, "Update", version, ""): Entry(found, version, now)} if found else {}


def _refuse_conflicts(request: Request, managers: Managers, difference: Comparison) -> None:
    if request.query.get("force") in ("true", "1"):
        return
    changed, mine = difference.added | difference.modified, _name(request)
    clashes: list[tuple[Name, Path]] = [
        (name, path)
        for name, entry in sorted(managers.items())
        if name != mine
        for path in sorted(entry.fields & changed)
    ]
    if not clashes:
        return
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_words(name)}",
            "field": readable(path),
        }
        for name, path in clashes
    ]
    if len(clashes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [f"Apply failed with {len(clashes)} conflicts:"]
        for name in dict(clashes):
            lines += [
                f"conflicts with {_words(name)}:",
                *(f"- {readable(p)}" for n, p in clashes if n == name),
            ]
        message = "\n".join(lines).replace("conflicts:\n", "conflicts: ", 1)
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _words(name: Name) -> str:
    manager, operation, version, subresource = name
    text = f'"{manager}"' + (f' with subresource "{subresource}"' if subresource else "")
    return text if operation == "Apply" else f"{text} using {version}"


def _merged(kind: Type, old: Any, new: Any) -> Any:
    """Both together; where both say something, new."""
    if old is None or leaf(kind, new) or type(old) is not type(new):
        return new
    if isinstance(new, dict):
        return {
            **old,
            **{name: _merged(kind.child(name), old.get(name), value) for name, value in new.items()},
        }
    left = {item_element(kind, item): item for item in old}
    right = {item_element(kind, item): item for item in new}
    return [
        _merged(kind.item or ANY, left.get(key), right.get(key, left.get(key))) for key in {**left, **right}
    ]


def _without(kind: Type, value: Any, lost: Fields) -> Any:
    """The value without the parts at these paths; a map or list that gets empty goes as well."""
    if not lost or leaf(kind, value):
        return value
    kept: list[tuple[str, Any]] = []
    for element, child, item in children(kind, value):
        if (element,) in lost:
            continue
        below = frozenset(path[1:] for path in lost if path[0] == element)
        left = _without(child, item, below)
        if left is not None:
            kept.append((element, left))
    if isinstance(value, dict):
        return {element[2:]: item for element, item in kept} or None
    return [item for _, item in kept] or None
