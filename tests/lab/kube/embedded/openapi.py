"""Custom resources against their definition's openAPIV3Schema.

Understood: type, properties, required, enum, items, additionalProperties, nullable, default, pattern, the
minimum and maximum of numbers, lengths and lists, x-kubernetes-preserve-unknown-fields, and of the CEL rules
only `self == oldSelf`. A definition with more is refused, because it would not be enforced.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.errors import Obj, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.embedded.registry import Resource

Cause = tuple[str, str, str]

IMMUTABLE = "self == oldSelf"
_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,),
    "integer": (int,), "number": (int, float), "boolean": (bool,),
}  # fmt: skip
_UNDERSTOOD = {
    "type", "properties", "required", "enum", "items", "additionalProperties", "nullable", "default",
    "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "description", "title",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}  # fmt: skip
_LIMITS = (
    ("minimum", (int, float), lambda value, limit: value >= limit, "should be greater than or equal to"),
    ("maximum", (int, float), lambda value, limit: value <= limit, "should be less than or equal to"),
    ("minLength", (str,), lambda value, limit: len(value) >= limit, "should be at least"),
    ("maxLength", (str,), lambda value, limit: len(value) <= limit, "should be at most"),
    ("minItems", (list,), lambda value, limit: len(value) >= limit, "should have at least"),
    ("maxItems", (list,), lambda value, limit: len(value) <= limit, "should have at most"),
    ("pattern", (str,), lambda value, limit: re.search(limit, value) is not None, "should match"),
)
UNCHECKED = (
    "<nil>",
    "FieldValueInvalid",
    (
        "Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    ),
)


def not_understood(raw: Any, path: str) -> Iterator[str]:
    """What a schema asks for that is not enforced here."""
    for key in sorted(set(raw) - _UNDERSTOOD):
        yield f"{path}.{key}"
    for index, rule in enumerate(raw.get("x-kubernetes-validations") or []):
        if rule.get("rule") != IMMUTABLE:
            yield f"{path}.x-kubernetes-validations[{index}].rule"
    for name, child in (raw.get("properties") or {}).items():
        yield from not_understood(child, f"{path}.properties[{name}]")
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), dict):
            yield from not_understood(raw[key], f"{path}.{key}")


def pruned(resource: Resource, obj: Obj) -> Obj:
    """The object without the fields its schema does not know, with the defaults it has."""
    schema = resource.schema or {}
    head = {key: obj[key] for key in ("kind", "apiVersion", "metadata") if key in obj}
    rest = {key: value for key, value in obj.items() if key not in head}
    return {**head, **_pruned(schema, rest)}


def _pruned(schema: Obj, value: Any) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        return [_pruned(items, item) for item in value] if items else value
    if not isinstance(value, dict):
        return value
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return {name: _pruned(extra, item) for name, item in value.items()}
    properties = schema.get("properties") or {}
    keep = schema.get("x-kubernetes-preserve-unknown-fields") or extra is True
    kept = {name: _pruned(properties.get(name) or {"x-kubernetes-preserve-unknown-fields": True}, item)
            for name, item in value.items() if keep or name in properties}  # fmt: skip
    for name, child in properties.items():
        if "default" in child and name not in kept:
            kept[name] = child["default"]
    return kept


def unknown(resource: Resource, obj: Obj) -> Iterator[str]:
    """Paths of the fields that pruning would drop."""
    kept = pruned(resource, obj)
    yield from _lost(obj, kept, "")


def _lost(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name not in after:
                yield f"{path}.{name}"
            else:
                yield from _lost(value, after[name], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from _lost(left, right, f"{path}[{index}]")


def validate(resource: Resource, obj: Obj, old: Obj | None) -> None:
    """Refuse what the schema refuses.

    Raises:
        ApiError: 422 with one cause a fault.
    """
    schema = resource.schema or {}
    causes = list(_faults(schema, obj, ""))
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"]["name"], [*causes, UNCHECKED])
    edited = list(_edited(schema, obj, old, "")) if old is not None else []
    if edited:
        raise invalid(resource.kind, resource.group, obj["metadata"]["name"], edited)


def _faults(schema: Obj, value: Any, path: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if wanted and not _is(value, wanted):
        found = _type_name(value)
        sentence = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
        yield path, "FieldValueTypeInvalid", sentence
        return
    if "enum" in schema and value not in schema["enum"]:
        listed = ", ".join(f'"{item}"' for item in schema["enum"])
        yield path, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}'
    for name, types, holds, words in _LIMITS:
        if name in schema and isinstance(value, types) and not holds(value, schema[name]):
            why = f"{path} in body {words} '{schema[name]}'"
            yield path, "FieldValueInvalid", f'Invalid value: "{value}": {why}'
    yield from _inner_faults(schema, value, path)


def _inner_faults(schema: Obj, value: Any, path: str) -> Iterator[Cause]:
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _faults(schema["items"], item, f"{path}[{index}]")
    if isinstance(value, dict):
        for name, child in _children(schema, value):
            yield from _faults(child, value[name], _below(path, name))
        for name in schema.get("required") or []:
            if value.get(name) is None:
                yield _below(path, name), "FieldValueRequired", "Required value"


def _children(schema: Obj, value: Obj) -> Iterator[tuple[str, Obj]]:
    """The fields of an object that have a schema; a null counts as absent where it is not allowed."""
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        child = properties.get(name, extra)
        if isinstance(child, dict) and (item is not None or child.get("nullable")):
            yield name, child


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    return isinstance(value, _JSON_TYPES[wanted])


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return next(
        name for name in ("boolean", "integer", "number", "string", "array", "object") if _is(value, name)
    )


def _edited(schema: Obj, new: Any, old: Any, path: str) -> Iterator[Cause]:
    """Breaches of `self == oldSelf`, which applies where both values are there."""
    for rule in schema.get("x-kubernetes-validations") or []:
        if new != old:
            yield (
                path,
                "FieldValueInvalid",
                f"Invalid value: {rule.get('message') or 'failed rule: ' + IMMUTABLE}",
            )
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(new, dict) and isinstance(old, dict) and name in new and name in old:
            yield from _edited(child, new[name], old[name], _below(path, name))
