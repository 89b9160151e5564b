"""The real server's published OpenAPI document → the compact schema that the embedded server works from.

    python -m tests.lab.kube.published

starts the real back end, reads /openapi/v2 and writes embedded/schema.json again. A contract test does the
same and compares.

A type is one of: `s i n b` string, integer, number, boolean; `q` quantity; `x` integer or string; `t` a time
in seconds, `u` one in microseconds; `*` anything; `@Name` a definition; `{"list": TYPE, "keys": [...]}` a
list merged by keys (no keys: a set; no "keys" at all: replaced as a whole); `{"map": TYPE}`. `"patch"` on a
list is its merge key in a strategic merge patch (empty: merged as a set). A definition is
`{"fields": {name: TYPE}}`. `"atomic"` marks maps and structs that are owned as a whole.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.lab.kube.binaries import MissingBinariesError
from tests.lab.kube.embedded.registry import BUILTIN, REVIEWS
from tests.lab.kube.server import start

TARGET = Path(__file__).with_name("embedded") / "schema.json"

SCALARS = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}
FREE = {
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": "*",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "*",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "*",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "x",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
}
"""Definitions that are leaves for us."""
SUBRESOURCES = (("policy", "v1", "Eviction"), ("authentication.k8s.io", "v1", "TokenRequest"))


def compact(document: dict[str, Any]) -> dict[str, Any]:
    """The schema of every kind the embedded server has, and of all that these refer to."""
    definitions = document["definitions"]
    kinds: dict[str, str] = {}
    for name, definition in definitions.items():
        for gvk in definition.get("x-kubernetes-group-version-kind", []):
            kinds[f"{gvk['group']}/{gvk['version']}/{gvk['kind']}"] = name
    wanted = [f"{r.group}/{r.version}/{r.kind}" for r in (*BUILTIN, *REVIEWS)]
    wanted += ["/".join(gvk) for gvk in SUBRESOURCES]
    found: dict[str, Any] = {}
    waiting = [kinds[kind] for kind in wanted]
    while waiting:
        name = waiting.pop()
        if _short(name) not in found:
            found[_short(name)] = _definition(definitions[name], waiting)
    return {
        "kinds": {kind: _short(kinds[kind]) for kind in sorted(wanted)},
        "types": dict(sorted(found.items())),
    }


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


def _definition(definition: dict[str, Any], waiting: list[str]) -> Any:
    if "properties" not in definition:
        return _type(definition, waiting)
    fields = {name: _type(field, waiting) for name, field in sorted(definition["properties"].items())}
    return {"fields": fields} | _atomic(definition)


def _atomic(schema: dict[str, Any]) -> dict[str, Any]:
    return {"atomic": True} if schema.get("x-kubernetes-map-type") == "atomic" else {}


def _type(schema: dict[str, Any], waiting: list[str]) -> Any:
    reference = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    if reference:
        name = reference.removeprefix("#/definitions/")
        if name in FREE:
            return FREE[name]
        waiting.append(name)
        return "@" + _short(name)
    kind = schema.get("type", "object")
    if kind in SCALARS:
        return "x" if schema.get("format") == "int-or-string" else SCALARS[kind]
    if kind == "array":
        return {"list": _type(schema["items"], waiting)} | _merging(schema)
    if "additionalProperties" in schema:
        return {"map": _type(schema["additionalProperties"], waiting)} | _atomic(schema)
    return "*"


def _merging(schema: dict[str, Any]) -> dict[str, Any]:
    listed, key = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-patch-merge-key")
    merged = "merge" in schema.get("x-kubernetes-patch-strategy", "")
    result: dict[str, Any] = {"patch": key or ""} if merged else {}
    if listed == "map":
        result["keys"] = schema["x-kubernetes-list-map-keys"]
    elif listed == "set":
        result["keys"] = []
    elif listed is None and merged:
        result["keys"] = [key] if key else []
    return result


def read_real() -> dict[str, Any]:
    """The compact schema of the real back end, started for this."""
    with tempfile.TemporaryDirectory() as folder, start("real", Path(folder)) as kube:
        code, document = kube.request("GET", "/openapi/v2")
    if code != 200:
        raise SystemExit(f"/openapi/v2 answered {code}: {document.get('message')}")
    return compact(document)


if __name__ == "__main__":
    try:
        schema = read_real()
    except MissingBinariesError as error:
        raise SystemExit(f"published: {error}") from None
    TARGET.write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")
