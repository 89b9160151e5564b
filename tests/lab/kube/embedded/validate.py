"""What the server refuses with 422: names, labels, taints, and the rules of the kinds we write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.lab.kube.embedded import openapi
from tests.lab.kube.embedded.errors import Obj, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.kube.embedded.registry import Resource

Cause = tuple[str, str, str]

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"

_FREE_NAMES = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
_LABEL_NAMES = {"namespaces", "services"}

_NAME_RULE = "name part must consist of alphanumeric characters, '-', '_' or '.'"
_VALUE_RULE = "at most 63 alphanumeric characters, '-', '_' or '.'"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)


def validate(resource: Resource, obj: Obj, old: Obj | None) -> None:
    """Refuse an object the real server would refuse.

    Raises:
        ApiError: 422 with one cause a fault.
    """
    causes = list(_metadata(resource, obj))
    if check := KINDS.get(resource.table):
        causes += check(obj, old)
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def wrong(field: str, value: object, why: str) -> Cause:
    return field, "FieldValueInvalid", f'Invalid value: "{value}": {why}'


def missing(field: str, why: str = "") -> Cause:
    return field, "FieldValueRequired", f"Required value: {why}" if why else "Required value"


def forbidden_field(field: str, why: str) -> Cause:
    return field, "FieldValueForbidden", f"Forbidden: {why}"


def _metadata(resource: Resource, obj: Obj) -> Iterator[Cause]:
    meta = obj["metadata"]
    name = meta.get("name", "")
    pattern = _LABEL if resource.plural in _LABEL_NAMES else _SUBDOMAIN
    if resource.plural not in _FREE_NAMES and (len(name) > 253 or not re.fullmatch(pattern, name)):
        yield wrong("metadata.name", name, _SUBDOMAIN_RULE)
    for key, value in (meta.get("labels") or {}).items():
        if not _qualified(key):
            yield wrong("metadata.labels", key, _NAME_RULE)
        if not _label_value(value):
            yield wrong("metadata.labels", value, f"a valid label must be {_VALUE_RULE}")
    for key in meta.get("annotations") or {}:
        if not _qualified(key.lower()):
            yield wrong("metadata.annotations", key, _NAME_RULE)
    yield from _finalizers(meta.get("finalizers") or [])


def _finalizers(finalizers: list[str]) -> Iterator[Cause]:
    for finalizer in finalizers:
        if "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", "kubernetes"):
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield wrong("metadata.finalizers", finalizer, why)


def _label_value(value: str) -> bool:
    return len(value) <= 63 and bool(re.fullmatch(_VALUE, value))


def _qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and re.fullmatch(_SUBDOMAIN, prefix)):
        return False
    return len(name) <= 63 and bool(re.fullmatch(_QUALIFIED, name))


def _node(obj: Obj, _: Obj | None) -> Iterator[Cause]:
    seen = set()
    for index, taint in enumerate(obj.get("spec", {}).get("taints") or []):
        path = f"metadata.taints[{index}]"
        if not _qualified(taint.get("key", "")):
            yield wrong(f"{path}.key", taint.get("key", ""), "name part must be non-empty")
        value = taint.get("value", "")
        if not _label_value(value):
            yield wrong(f"{path}.value", value, f"must be no more than 63 bytes: {_VALUE_RULE}")
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield (
                f"{path}.effect",
                "FieldValueNotSupported",
                f'Unsupported value: "{taint.get("effect", "")}"',
            )
        pair = (taint.get("key"), taint.get("effect"))
        if pair in seen:
            message = f'Duplicate value: {{"key":"{pair[0]}","effect":"{pair[1]}"}}'
            yield (path, "FieldValueDuplicate", message)
        seen.add(pair)


def _pod(obj: Obj, old: Obj | None) -> Iterator[Cause]:
    spec = obj.get("spec", {})
    if not spec.get("containers"):
        yield missing("spec.containers")
    for index, container in enumerate(spec.get("containers", [])):
        for key in ("name", "image"):
            if not container.get(key):
                yield missing(f"spec.containers[{index}].{key}")
    if old is not None and _fixed(spec) != _fixed(old["spec"]):
        why = "pod updates may not change fields other than `spec.containers[*].image`,"
        why += "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
        yield forbidden_field("spec", why)


def _fixed(spec: Obj) -> Obj:
    free = (
        "tolerations",
        "activeDeadlineSeconds",
        "terminationGracePeriodSeconds",
        "containers",
        "initContainers",
    )
    kept = {key: value for key, value in spec.items() if key not in free}
    kept["containers"] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get("containers", [])]
    return kept


def _budget(obj: Obj, _: Obj | None) -> Iterator[Cause]:
    spec = obj.get("spec", {})
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield (
            "spec",
            "FieldValueInvalid",
            "Invalid value: minAvailable and maxUnavailable cannot be both set",
        )


def _lease(obj: Obj, _: Obj | None) -> Iterator[Cause]:
    seconds = obj.get("spec", {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield (
            "spec.leaseDurationSeconds",
            "FieldValueInvalid",
            f"Invalid value: {seconds}: must be greater than 0",
        )


def _binding(obj: Obj, old: Obj | None) -> Iterator[Cause]:
    if old is not None and obj.get("roleRef") != old.get("roleRef"):
        yield ("roleRef", "FieldValueInvalid", "Invalid value: cannot change roleRef")
    for index, subject in enumerate(obj.get("subjects") or []):
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield missing(f"subjects[{index}].namespace")


def _definition(obj: Obj, _: Obj | None) -> Iterator[Cause]:
    spec = obj.get("spec", {})
    expected = f"{spec.get('names', {}).get('plural')}.{spec.get('group')}"
    if obj["metadata"]["name"] != expected:
        yield wrong("metadata.name", obj["metadata"]["name"], 'must be spec.names.plural+"."+spec.group')
    for index, version in enumerate(spec.get("versions") or []):
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        raw = (version.get("schema") or {}).get("openAPIV3Schema")
        if not raw:
            yield missing(path, "schemas are required")
            continue
        for unsupported in openapi.not_understood(raw, path):
            yield wrong(
                unsupported,
                "",
                "the embedded lab server does not enforce this; use the real back end or teach it",
            )
    if sum(bool(version.get("storage")) for version in spec.get("versions") or []) != 1:
        yield (
            "spec.versions",
            "FieldValueInvalid",
            "Invalid value: must have exactly one version marked as storage version",
        )


KINDS: dict[str, Callable[[Obj, Obj | None], Iterator[Cause]]] = {
    "nodes": _node,
    "pods": _pod,
    "poddisruptionbudgets.policy": _budget,
    "leases.coordination.k8s.io": _lease,
    "rolebindings.rbac.authorization.k8s.io": _binding,
    "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
