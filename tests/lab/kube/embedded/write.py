"""POST, PUT and PATCH: one path from a body to a stored object."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.lab.kube.embedded import defaults, managed, openapi, patch, quota, schema
from tests.lab.kube.embedded.errors import (
    ApiError,
    Obj,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    stale,
)
from tests.lab.kube.embedded.state import Request, State, stamp
from tests.lab.kube.embedded.validate import validate

if TYPE_CHECKING:
    from tests.lab.kube.embedded.registry import Resource

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated names, as in apimachinery."""
Recorder = Callable[[Request, Obj | None, Obj, str], Obj]
"""(request, old, new, now) → new with its managedFields."""
SERVER_FIELDS = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
"""Metadata that a client cannot change."""


def create(state: State, request: Request, body: Obj, record: Recorder = managed.recorded) -> Obj:
    """Store a new object.

    Raises:
        ApiError: 409 for one that exists, 404 for its namespace, 403 for a terminating one, 400 and 422.
    """
    resource = request.resource
    obj = typed(request, body, "")
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    if not meta.get("name") and not meta.get("generateName"):
        message = "Required value: name or generateName is required"
        causes = [("metadata.name", "FieldValueRequired", message)]
        raise invalid(resource.kind, resource.group, "", causes)
    meta["name"] = meta.get("name") or meta["generateName"] + "".join(
        secrets.choice(SUFFIX_LETTERS) for _ in range(5)
    )
    _admit(state, request, obj)
    if state.store.get(resource.table, request.namespace, meta["name"]) is not None:
        raise already_exists(resource.plural, resource.group, meta["name"])
    for server_field in SERVER_FIELDS:
        meta.pop(server_field, None)
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(state.now())}
    if resource.generation or resource.custom:
        meta["generation"] = 1
    if resource.status and not resource.keeps_status_on_create:
        obj.pop("status", None)
    obj = defaults.on_write(resource.table, defaults.decoded(resource.table, obj))
    obj = record(request, None, obj, stamp(state.now()))
    obj = defaults.admitted(resource.table, obj)
    _check(resource, obj, None)
    return obj if request.dry_run else state.store.put(resource.table, obj)


def _admit(state: State, request: Request, obj: Obj) -> None:
    resource, name = request.resource, obj["metadata"]["name"]
    if resource.namespaced:
        namespace = state.store.get("namespaces", "", request.namespace)
        if namespace is None:
            raise not_found("namespaces", "", request.namespace)
        if namespace["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {request.namespace} "
            why += "because it is being terminated"
            refused = forbidden(resource.plural, resource.group, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {request.namespace} is being terminated",
            }
            refused.details = {
                **(refused.details or {}),
                "causes": [{**cause, "field": "metadata.namespace"}],
            }
            raise refused
    account = (obj.get("spec") or {}).get("serviceAccountName") if resource.table == "pods" else None
    if account and state.store.get("serviceaccounts", request.namespace, account) is None:
        why = f"error looking up service account {request.namespace}/{account}"
        raise forbidden("pods", "", name, f'{why}: serviceaccount "{account}" not found')
    if resource.namespaced:
        quota.admit(state, resource, request.namespace, obj)


def update(state: State, request: Request, body: Obj) -> Obj:
    """Replace an object (PUT).

    Raises:
        ApiError: 404, 409 for a stale resourceVersion or another uid, 400 and 422.
    """
    resource = request.resource
    new = typed(request, body, request.name)
    old = existing(state, request)
    if not new["metadata"].get("resourceVersion") and not resource.unconditional_update:
        cause = (
            "metadata.resourceVersion",
            "FieldValueInvalid",
            "Invalid value: 0: must be specified for an update",
        )
        refused = invalid(resource.plural, resource.group, request.name, [cause])
        raise refused
    uid, asked = old["metadata"]["uid"], new["metadata"].get("uid")
    if asked not in (None, "", uid):
        why = f"Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}"
        raise conflict(resource.plural, resource.group, request.name, why)
    return commit(state, request, old, new)


def existing(state: State, request: Request) -> Obj:
    """The stored object a request names.

    Raises:
        ApiError: 404.
    """
    found = state.store.get(request.resource.table, request.namespace, request.name)
    if found is None:
        raise not_found(request.resource.plural, request.resource.group, request.name)
    return found


def change(state: State, request: Request, body: Obj, content_type: str) -> Obj:
    """Patch an object (server-side apply is elsewhere).

    Raises:
        ApiError: 404, 409, 415 for a patch type that is not served here, 400 and 422.
    """
    if request.query.get("force"):
        cause = ("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch")
        raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
    old = existing(state, request)
    edits: dict[str, Callable[[], Obj]] = {
        patch.MERGE: lambda: patch.merged(old, body),
        patch.JSON: lambda: patch.json_patched(old, body),
        patch.STRATEGIC: lambda: patch.strategic(old, body, schema.of(request.resource)),
    }
    if content_type not in edits or (content_type == patch.STRATEGIC and request.resource.custom):
        message = "the body of the request was in an unknown format - accepted media types include: "
        message += ", ".join(edits)
        raise ApiError(415, "UnsupportedMediaType", message)
    new = typed(request, edits[content_type](), request.name)
    return commit(state, request, old, new)


def commit(state: State, request: Request, old: Obj, new: Obj, record: Recorder = managed.recorded) -> Obj:
    """Store a changed object, its status or all but its status; unchanged ones keep their revision.

    Raises:
        ApiError: 409 for a stale resourceVersion, 422.
    """
    resource, meta = request.resource, new["metadata"]
    if meta.get("uid") not in (None, "", old["metadata"]["uid"]):
        cause = ("metadata.uid", "FieldValueInvalid", f'Invalid value: "{meta["uid"]}": field is immutable')
        raise invalid(resource.kind, resource.group, request.name, [cause])
    if meta.get("resourceVersion") not in (None, "", "0", old["metadata"]["resourceVersion"]):
        raise stale(resource.plural, resource.group, request.name)
    new = defaults.on_write(resource.table, prepared(request, old, new))
    _check(resource, new, old)
    new = record(request, old, new, stamp(state.now()))
    return stored(state, request, old, new)


def stored(state: State, request: Request, old: Obj, new: Obj) -> Obj:
    """Write a prepared object if it differs; one whose last finalizer went is deleted."""
    table = request.resource.table
    if request.dry_run or new == old:
        return new
    gone = new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers")
    if gone and not new["metadata"].get("deletionGracePeriodSeconds") and not _held(table, new):
        return state.store.remove(table, new)
    return state.store.put(table, new)


def _held(table: str, obj: Obj) -> bool:
    return table == "namespaces" and bool(obj.get("spec", {}).get("finalizers"))


def prepared(request: Request, old: Obj, new: Obj) -> Obj:
    """The new object with the parts this endpoint does not write taken from the old one."""
    resource, was = request.resource, old["metadata"]
    new = dict(new)
    if request.subresource == "status":
        meta = was if resource.custom else {**was, **_marks(new["metadata"])}
        status = {"status": new["status"]} if "status" in new else {}
        managed_fields = {k: v for k, v in new["metadata"].items() if k == "managedFields"}
        kept = {key: value for key, value in old.items() if key != "status"}
        return {**kept, "metadata": {**meta, **managed_fields}, **status}
    if resource.status:
        new.pop("status", None)
        new |= {"status": old["status"]} if "status" in old else {}
    meta = {**{key: value for key, value in new["metadata"].items() if key not in SERVER_FIELDS}}
    meta |= {key: was[key] for key in (*SERVER_FIELDS, "resourceVersion", "name", "namespace") if key in was}
    new["metadata"] = meta
    if "generation" in was and _substance(resource, old) != _substance(resource, new):
        meta["generation"] = was["generation"] + 1
    return new


def _marks(meta: Obj) -> Obj:
    return {key: meta[key] for key in ("labels", "annotations") if key in meta}


def _substance(resource: Resource, obj: Obj) -> Obj:
    ignored = ("metadata", "status") if resource.status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in ignored}


def typed(request: Request, body: Obj, name: str) -> Obj:
    """The body as an object of the request's kind, with a metadata dict of its own."""
    resource = request.resource
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    if resource.custom and not body.get("kind"):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): Object 'Kind' is missing"
        )
    head = (body.get("apiVersion") or resource.api_version, body.get("kind") or resource.kind)
    if head != (resource.api_version, resource.kind):
        found = f'{head[1]} in version "{head[0]}"'
        raise bad_request(f"{found} cannot be handled as a {resource.kind}: unknown conversion")
    obj = {"kind": resource.kind, "apiVersion": resource.api_version, **body}
    obj["metadata"] = dict(obj.get("metadata") or {})
    if request.query.get("fieldValidation") == "Strict":
        _refuse_unknown(resource, obj)
    obj = openapi.pruned(resource, obj) if resource.custom else schema.conform(resource, obj)
    obj["metadata"] = dict(obj.get("metadata") or {})
    meta = obj["metadata"]
    if name and meta.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        )
    if resource.namespaced and meta.setdefault("namespace", request.namespace) != request.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not resource.namespaced:
        meta.pop("namespace", None)
    return obj


def _refuse_unknown(resource: Resource, obj: Obj) -> None:
    paths = list(openapi.unknown(resource, obj) if resource.custom else schema.unknown(resource, obj))
    if paths:
        listed = ", ".join(f'unknown field "{path[1:]}"' for path in paths)
        raise bad_request(f"strict decoding error: {listed}")


def _check(resource: Resource, obj: Obj, old: Obj | None) -> None:
    validate(resource, obj, old)
    if resource.custom:
        openapi.validate(resource, obj, old)
