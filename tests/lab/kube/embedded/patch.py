"""PATCH bodies: JSON merge patch (RFC 7386), JSON patch (RFC 6902), strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from tests.lab.kube.embedded.errors import ApiError, Obj, bad_request
from tests.lab.kube.embedded.schema import ANY, Type

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def merged(target: Any, patch: Any) -> Any:
    """The target with a JSON merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def strategic(target: Any, patch: Any, kind: Type) -> Any:
    """The target with a strategic merge patch applied: lists merge by their patch key.

    Raises:
        ApiError: 400 for a directive other than `$patch`, `$deleteFromPrimitiveList` and `$setElementOrder`,
            which is taken without keeping the order.
    """
    if isinstance(patch, list) and kind.kind == "list":
        return _strategic_list(target or [], patch, kind)
    if not isinstance(patch, dict):
        return patch
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive not in (None, "merge"):
        raise bad_request(f"unsupported strategic merge patch directive: $patch: {directive}")
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        _strategic_field(result, key, value, kind)
    return result


def _strategic_field(result: Obj, key: str, value: Any, kind: Type) -> None:
    if key.startswith("$deleteFromPrimitiveList/"):
        name = key.partition("/")[2]
        result[name] = [item for item in result.get(name) or [] if item not in value]
    elif key.startswith("$setElementOrder/") or key == "$patch":
        pass
    elif key.startswith("$"):
        raise bad_request(f"unsupported strategic merge patch directive: {key}")
    elif value is None:
        result.pop(key, None)
    else:
        result[key] = strategic(result.get(key), value, kind.child(key))


def _strategic_list(target: list[Any], patch: list[Any], kind: Type) -> list[Any]:
    if kind.patch_key is None or {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    if not kind.patch_key:
        return target + [item for item in patch if item not in target]
    result = list(target)
    for item in patch:
        if not isinstance(item, dict) or kind.patch_key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {kind.patch_key}")
        at = next(
            (i for i, old in enumerate(result) if old.get(kind.patch_key) == item[kind.patch_key]), None
        )
        if item.get("$patch") == "delete":
            result = [old for i, old in enumerate(result) if i != at]
        elif at is None:
            result.append(strategic({}, item, kind.item or ANY))
        else:
            result[at] = strategic(result[at], item, kind.item or ANY)
    return result


def json_patched(target: Obj, operations: Any) -> Obj:
    """The target with a JSON patch applied.

    Raises:
        ApiError: 400 for a malformed patch, 422 for one that does not fit (a failed test, a missing path).
    """
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    document: Obj = copy.deepcopy(target)
    for operation in operations:
        try:
            _operate(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            message = f"the server rejected our request due to an error in our request: {operation}: {error}"
            raise ApiError(422, "Invalid", message, {}) from error
    return document


def _operate(document: Obj, operation: Obj) -> None:
    path = _pointer(operation["path"])
    match operation["op"]:
        case "add":
            _add(document, path, operation["value"])
        case "remove":
            _remove(document, path)
        case "replace":
            _remove(document, path)
            _add(document, path, operation["value"])
        case "test":
            if _at(document, path) != operation["value"]:
                raise ValueError(f"testing path {operation['path']} failed")
        case "copy":
            _add(document, path, copy.deepcopy(_at(document, _pointer(operation["from"]))))
        case "move":
            _add(document, path, _remove(document, _pointer(operation["from"])))
        case unknown:
            raise ValueError(f"Unexpected kind: {unknown}")


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _add(document: Any, path: list[str], value: Any) -> None:
    parent, last = _at(document, path[:-1]), path[-1]
    if not isinstance(parent, list):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        if int(last) > len(parent):
            raise IndexError(last)
        parent.insert(int(last), value)


def _remove(document: Any, path: list[str]) -> Any:
    parent, last = _at(document, path[:-1]), path[-1]
    return parent.pop(int(last) if isinstance(parent, list) else last)
