"""Resource quotas: how many objects a namespace may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kube.embedded.errors import Obj, forbidden, invalid

if TYPE_CHECKING:
    from tests.lab.kube.embedded.registry import Resource
    from tests.lab.kube.embedded.state import State
    from tests.lab.kube.embedded.storage import Event

QUOTAS = "resourcequotas"


def follow(state: State, event: Event) -> None:
    """Listener of the store: keep the status of the quotas that a change can touch."""
    if event.table == QUOTAS and event.type == "DELETED":
        return
    namespace = event.object["metadata"].get("namespace", "")
    for quota in state.store.all(QUOTAS, namespace) if namespace else []:
        hard = quota["spec"].get("hard") or {}
        status = {"hard": hard, "used": {key: str(_used(state, namespace, key)) for key in hard}}
        if quota.get("status") != status:
            state.store.put(QUOTAS, {**quota, "status": status})


def admit(state: State, resource: Resource, namespace: str, obj: Obj) -> None:
    """Refuse one object more than a quota allows.

    Raises:
        ApiError: 403 as by the ResourceQuota admission; 422 for a quota that this server does not enforce.
    """
    name = obj["metadata"]["name"]
    if resource.table == QUOTAS:
        _check(state, obj)
        return
    mine = (f"count/{resource.table}", *(["pods"] if resource.table == "pods" else []))
    for quota in state.store.all(QUOTAS, namespace):
        hard = quota["spec"].get("hard") or {}
        over = [key for key in mine if key in hard and _used(state, namespace, key) + 1 > int(hard[key])]
        if over:
            asked = ",".join(f"{key}=1" for key in over)
            used = ",".join(f"{key}={_used(state, namespace, key)}" for key in over)
            limited = ",".join(f"{key}={hard[key]}" for key in over)
            why = f"exceeded quota: {quota['metadata']['name']}, requested: {asked}, used: {used}, "
            raise forbidden(resource.plural, resource.group, name, why + f"limited: {limited}")


def _check(state: State, quota: Obj) -> None:
    known = {"pods", *(f"count/{each.table}" for each in state.registry.stored())}
    causes = [
        (f"spec.hard[{key}]", "FieldValueInvalid", "the embedded lab server does not enforce this")
        for key in (quota.get("spec") or {}).get("hard") or {}
        if key not in known
    ]
    if causes:
        raise invalid("ResourceQuota", "", quota["metadata"]["name"], causes)


def _used(state: State, namespace: str, key: str) -> int:
    """Pods that have ended do not count for `pods`; `count/pods` counts them too."""
    found = state.store.all(key.removeprefix("count/"), namespace)
    if key == "pods":
        ended = ("Succeeded", "Failed")
        found = [pod for pod in found if (pod.get("status") or {}).get("phase") not in ended]
    return len(found)
