"""The small controllers around the store: namespaces, service accounts, owned objects, definitions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tests.lab.kube.embedded import crd, disruption, quota, rbac
from tests.lab.kube.embedded.state import State, stamp

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.storage import Event

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def begin(state: State) -> None:
    """Hear every change from now on and create what a fresh cluster has."""
    listeners = (_namespace, _owner, crd.follow, disruption.follow, quota.follow)
    state.store.listeners += [_bind(state, listener) for listener in listeners]
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        meta = {"name": name, "labels": labels, **_fresh(state)}
        spec = {"finalizers": ["kubernetes"]}
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": meta, "spec": spec}
        state.store.put("namespaces", {**namespace, "status": {"phase": "Active"}})
    for obj in rbac.BOOTSTRAP:
        labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
        table = f"{obj['kind'].lower()}s.{rbac.GROUP}"
        state.store.put(table, {**obj, "metadata": {**obj["metadata"], "labels": labels, **_fresh(state)}})


def _bind(state: State, listener):  # type: ignore[no-untyped-def]
    return lambda event: listener(state, event)


def _fresh(state: State) -> Obj:
    return {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(state.now())}


def _namespace(state: State, event: Event) -> None:
    """Give a new namespace its default ServiceAccount and empty a terminating one."""
    if event.table != "namespaces" or event.type == "DELETED":
        return
    name = event.object["metadata"]["name"]
    current = state.store.get("namespaces", "", name)
    if current is None:
        return
    if event.type == "ADDED":
        meta = {"name": "default", "namespace": name, **_fresh(state)}
        state.store.put("serviceaccounts", {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": meta})
    if "deletionTimestamp" in current["metadata"]:
        _empty(state, current)


def _empty(state: State, namespace: Obj) -> None:
    name, left = namespace["metadata"]["name"], False
    for resource in state.registry.stored():
        for obj in state.store.all(resource.table, name) if resource.namespaced else []:
            if obj["metadata"].get("finalizers"):
                left = True
                if "deletionTimestamp" not in obj["metadata"]:
                    meta = {
                        **obj["metadata"],
                        "deletionTimestamp": stamp(state.now()),
                        "deletionGracePeriodSeconds": 0,
                    }
                    state.store.put(resource.table, {**obj, "metadata": meta})
            else:
                state.store.remove(resource.table, obj)
    if not left:
        state.store.remove("namespaces", namespace)


def _owner(state: State, event: Event) -> None:
    """Delete what a deleted object owned; let a terminating namespace look again."""
    if event.type != "DELETED":
        return
    uid, namespace = event.object["metadata"]["uid"], event.object["metadata"].get("namespace", "")
    for resource in state.registry.stored():
        for obj in state.store.all(resource.table, namespace):
            owners = obj["metadata"].get("ownerReferences") or []
            if (
                owners
                and all(owner["uid"] == uid for owner in owners)
                and not obj["metadata"].get("finalizers")
            ):
                state.store.remove(resource.table, obj)
    holder = state.store.get("namespaces", "", namespace) if namespace else None
    if holder is not None and "deletionTimestamp" in holder["metadata"]:
        _empty(state, holder)
