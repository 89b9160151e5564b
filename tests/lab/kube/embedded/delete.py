"""DELETE: preconditions, grace periods, finalizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kube.embedded.errors import Obj, about, conflict, forbidden, status
from tests.lab.kube.embedded.listing import list_objects
from tests.lab.kube.embedded.state import Request, State, stamp
from tests.lab.kube.embedded.write import existing

if TYPE_CHECKING:
    from tests.lab.kube.embedded.registry import Resource

PROTECTED = ("default", "kube-system", "kube-public")


def delete(state: State, request: Request, options: Obj) -> Obj:
    """Delete one object, or mark it and leave the rest to its kubelet or finalizers.

    Raises:
        ApiError: 404, 409 for a precondition that does not hold, 403 for a namespace that must stay.
    """
    resource, obj = request.resource, existing(state, request)
    if resource.table == "namespaces" and request.name in PROTECTED:
        raise forbidden("namespaces", "", request.name, "this namespace may not be deleted")
    check_preconditions(resource, obj, options)
    marked, gone = deleted(state, resource, obj, options)
    if request.dry_run or "All" in (options.get("dryRun") or []):
        return _answer(resource, obj, gone=gone)
    if not gone:
        return (
            marked
            if marked == obj
            else _answer(resource, state.store.put(resource.table, marked), gone=False)
        )
    return _answer(resource, state.store.remove(resource.table, marked), gone=True)


def _answer(resource: Resource, obj: Obj, *, gone: bool) -> Obj:
    if not gone or resource.returns_deleted:
        return obj
    details = about(resource.plural, resource.group, obj["metadata"]["name"])
    return status("Success", details={**details, "uid": obj["metadata"]["uid"]})


def check_preconditions(resource: Resource, obj: Obj, options: Obj) -> None:
    """Refuse a deletion meant for another object.

    Raises:
        ApiError: 409.
    """
    wanted, meta = options.get("preconditions") or {}, obj["metadata"]
    if wanted.get("uid") not in (None, "", meta["uid"]):
        why = f"the UID in the precondition ({wanted['uid']}) does not match the UID in record "
        why += f"({meta['uid']}). The object might have been deleted and then recreated"
        raise conflict(resource.kind, resource.group, meta["name"], why)
    version = meta["resourceVersion"]
    if wanted.get("resourceVersion") not in (None, "", version):
        why = f"the ResourceVersion in the precondition ({wanted['resourceVersion']}) does not match the "
        why += f"ResourceVersion in record ({version}). The object might have been modified"
        raise conflict(resource.kind, resource.group, meta["name"], why)


def deleted(state: State, resource: Resource, obj: Obj, options: Obj) -> tuple[Obj, bool]:
    """The object as a deletion leaves it, and whether it is gone altogether."""
    meta = dict(obj["metadata"])
    grace = grace_seconds(resource, obj, options)
    held = bool(meta.get("finalizers")) or (
        resource.table == "namespaces" and bool(obj["spec"].get("finalizers"))
    )
    if grace == 0 and not held:
        return obj, True
    if "deletionTimestamp" in meta and grace >= meta.get("deletionGracePeriodSeconds", 0):
        return obj, False
    meta |= {"deletionTimestamp": stamp(state.now() + grace), "deletionGracePeriodSeconds": grace}
    if "generation" in meta and "deletionTimestamp" not in obj["metadata"]:
        meta["generation"] += 1
    marked = {**obj, "metadata": meta}
    if resource.table == "namespaces":
        del meta["deletionGracePeriodSeconds"]
        marked["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return marked, False


def grace_seconds(resource: Resource, obj: Obj, options: Obj) -> int:
    """Seconds until the kubelet kills; 0 for all but running pods that are bound to a node."""
    if resource.table != "pods":
        return 0
    if not obj["spec"].get("nodeName") or obj.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    asked = options.get("gracePeriodSeconds")
    seconds: int = obj["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked
    return seconds


def delete_collection(state: State, request: Request, options: Obj) -> Obj:
    """Delete all that a request selects; answers with the list as it was."""
    found = list_objects(state, request)
    for item in found["items"]:
        current = state.store.get(
            request.resource.table, item["metadata"].get("namespace", ""), item["metadata"]["name"]
        )
        if current is None or request.dry_run:
            continue
        marked, gone = deleted(state, request.resource, current, options)
        if gone:
            state.store.remove(request.resource.table, marked)
        elif marked is not current:
            state.store.put(request.resource.table, marked)
    return found
