"""Types of fields: which lists are merged by which keys, which maps are owned as a whole, what is unknown.

Built-in kinds come from schema.json (written by tests.lab.kube.published), custom ones from their definition.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.errors import Obj, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.embedded.registry import Resource

KEY_DEFAULTS = {"protocol": "TCP"}
"""Defaults of fields that serve as list keys (ports of containers and services)."""


@dataclass(slots=True)
class Type:
    """One field's type; `kind` is scalar, any, list, map or struct."""

    kind: str
    scalar: str = ""
    item: Type | None = None
    keys: tuple[str, ...] | None = None
    patch_key: str | None = None
    fields: dict[str, Type] = field(default_factory=dict)
    atomic: bool = False
    open: bool = False

    def child(self, name: str) -> Type:
        """Type of a map entry or struct field; unknown ones are free."""
        if self.kind == "map" and self.item is not None:
            return self.item
        return self.fields.get(name, ANY)


ANY = Type("any")


class _Loader:
    def __init__(self, document: Obj) -> None:
        self.kinds: dict[str, str] = document["kinds"]
        self._raw: dict[str, Any] = document["types"]
        self._done: dict[str, Type] = {}

    def named(self, name: str) -> Type:
        if name not in self._done:
            raw = self._raw[name]
            if not isinstance(raw, dict) or "fields" not in raw:
                self._done[name] = self.build(raw)
            else:
                struct = self._done[name] = Type("struct", atomic=raw.get("atomic", False))
                struct.fields = {key: self.build(value) for key, value in raw["fields"].items()}
        return self._done[name]

    def build(self, raw: Any) -> Type:
        if isinstance(raw, str):
            if raw == "*":
                return ANY
            return self.named(raw[1:]) if raw.startswith("@") else Type("scalar", scalar=raw)
        if "list" in raw:
            keys = tuple(raw["keys"]) if "keys" in raw else None
            return Type("list", item=self.build(raw["list"]), keys=keys, patch_key=raw.get("patch"))
        return Type("map", item=self.build(raw["map"]), atomic=raw.get("atomic", False))


@functools.cache
def _loader() -> _Loader:
    return _Loader(json.loads(Path(__file__).with_name("schema.json").read_text()))


@functools.cache
def builtin(group: str, version: str, kind: str) -> Type | None:
    """The type of a built-in kind; None for one that is not known."""
    name = _loader().kinds.get(f"{group}/{version}/{kind}")
    return _loader().named(name) if name else None


def of(resource: Resource) -> Type:
    """The type of a resource's objects."""
    if resource.custom:
        return custom(resource)
    return builtin(resource.group, resource.version, resource.kind) or ANY


@functools.lru_cache(maxsize=64)
def custom(resource: Resource) -> Type:
    """The type of a custom resource's objects, from its definition's openAPIV3Schema."""
    root = _from_openapi(resource.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    meta = _loader().named("meta.v1.ObjectMeta")
    root.fields |= {
        "metadata": meta,
        "apiVersion": Type("scalar", scalar="s"),
        "kind": Type("scalar", scalar="s"),
    }
    return root


def _from_openapi(raw: Obj) -> Type:
    preserved = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
    atomic = raw.get("x-kubernetes-map-type") == "atomic"
    match raw.get("type"):
        case "array":
            listed = raw.get("x-kubernetes-list-type", "atomic")
            keys = {"map": tuple(raw.get("x-kubernetes-list-map-keys", ())), "set": ()}.get(listed)
            return Type("list", item=_from_openapi(raw.get("items") or {}), keys=keys)
        case "object" if isinstance(raw.get("additionalProperties"), dict):
            return Type("map", item=_from_openapi(raw["additionalProperties"]), atomic=atomic)
        case "object":
            fields = {name: _from_openapi(child) for name, child in (raw.get("properties") or {}).items()}
            return Type("struct", fields=fields, atomic=atomic, open=preserved)
        case "string" | "integer" | "number" | "boolean" as kind:
            return Type("scalar", scalar=kind[0])
        case _:
            return ANY


_ACCEPTS: dict[str, tuple[type, ...]] = {
    "s": (str,), "b": (bool,), "i": (int,), "n": (int, float), "q": (str, int, float), "x": (str, int),
    "t": (str,), "u": (str,),
}  # fmt: skip


_DAY = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_TIMES = {
    "t": ("2006-01-02T15:04:05Z07:00", re.compile(_DAY + r"(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")),
    "u": ("2006-01-02T15:04:05.000000Z07:00", re.compile(_DAY + r"\.\d{6}(Z|[+-]\d\d:\d\d)")),
}
"""Layout and form of metav1.Time and metav1.MicroTime; the second insists on six digits."""


def conform(resource: Resource, obj: Obj) -> Obj:
    """A built-in object without unknown fields, nulls and empty lists, as Go decodes and encodes it.

    Raises:
        ApiError: 400, a field has the wrong JSON type.
    """
    cleaned: Obj = _conform(of(resource), obj, resource.kind)
    return cleaned


def _conform(kind: Type, value: Any, path: str) -> Any:
    match kind.kind:
        case "scalar":
            ok = isinstance(value, _ACCEPTS[kind.scalar]) and (
                kind.scalar == "b" or not isinstance(value, bool)
            )
            if not ok:
                return _mismatch(value, path)
            return _time(kind.scalar, value) if kind.scalar in _TIMES else value
        case "list":
            if not isinstance(value, list):
                return _mismatch(value, path)
            return [_conform(kind.item or ANY, item, path) for item in value]
        case "map" | "struct":
            if not isinstance(value, dict):
                return _mismatch(value, path)
            return _conform_fields(kind, value, path)
        case _:
            return value


def _time(scalar: str, text: str) -> str:
    """A time as Go writes it back: in UTC, with no fraction or, for a MicroTime, exactly six digits of it."""
    layout, canonical = _TIMES[scalar]
    if not canonical.fullmatch(text):
        raise bad_request(f'parsing time "{text}" as "{layout}": cannot parse "{text}"')
    if text.endswith("Z") and (scalar == "u" or "." not in text):
        return text
    moment = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if scalar == "u" else "%Y-%m-%dT%H:%M:%SZ")


def _conform_fields(kind: Type, value: Obj, path: str) -> Obj:
    kept: Obj = {}
    for name, item in value.items():
        if item is None or (kind.kind == "struct" and name not in kind.fields):
            continue
        child = kind.child(name)
        if item in ([], {}) and child.kind in ("list", "map"):
            continue
        kept[name] = _conform(child, item, f"{path}.{name}")
    return kept


def unknown(resource: Resource, obj: Obj) -> Iterator[str]:
    """Paths of the fields a built-in kind does not have."""
    return _unknown(of(resource), obj, "")


def _unknown(kind: Type, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(kind.item or ANY, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            if kind.kind == "struct" and name not in kind.fields:
                yield f"{path}.{name}"
            else:
                yield from _unknown(kind.child(name), item, f"{path}.{name}")


def _mismatch(value: Any, path: str) -> Any:
    found = {bool: "bool", str: "string", int: "number", float: "number", list: "array", dict: "object"}[
        type(value)
    ]
    kind, _, where = path.partition(".")
    sentence = f"json: cannot unmarshal {found} into Go struct field {kind}.{where}"
    raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {sentence}')
