"""Sets of field paths: which fields an object has, which differ, and how fieldsV1 writes them.

A path is a tuple of elements as fieldsV1 writes them: `f:name` for a field, `k:{"type":"Ready"}` for a list
item by its keys, `v:"x"` for a member of a set. The rules are those of structured-merge-diff, which
kube-apiserver uses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.schema import ANY, KEY_DEFAULTS, Type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.embedded.errors import Obj

Path = tuple[str, ...]
Fields = frozenset[Path]


def item_element(kind: Type, item: Any) -> str:
    """The path element of a list item."""
    if not kind.keys:
        return "v:" + _json(item)
    return "k:" + _json({key: item.get(key, KEY_DEFAULTS.get(key)) for key in sorted(kind.keys)})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def leaf(kind: Type, value: Any) -> bool:
    """Whether a value is owned as a whole: scalars, atomic lists and maps."""
    if isinstance(value, dict):
        return kind.atomic or kind.kind == "scalar"
    return not isinstance(value, list) or kind.kind != "list" or kind.keys is None


def children(kind: Type, value: Any) -> Iterator[tuple[str, Type, Any]]:
    """The parts of a map or an associative list: path element, type, value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"f:{name}", kind.child(name), item
    else:
        for item in value:
            yield item_element(kind, item), kind.item or ANY, item


def fields_of(kind: Type, value: Any) -> Fields:
    """The paths an applied configuration claims."""
    found: set[Path] = set()
    _collect(kind, value, (), found)
    return frozenset(found)


def _collect(kind: Type, value: Any, path: Path, found: set[Path]) -> None:
    if leaf(kind, value):
        found.add(path)
        return
    for element, child, item in children(kind, value):
        below = (*path, element)
        _collect(child, item, below, found)
        named = element.startswith("f:") and element[2:] in kind.fields
        if not named or item is None or item == {}:
            found.add(below)


@dataclass(slots=True)
class Comparison:
    """What differs between two objects."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    def without(self, prefixes: tuple[Path, ...]) -> Comparison:
        """The differences outside of some parts of the object."""
        return Comparison(*({p for p in paths if not any(p[: len(x)] == x for x in prefixes)}
                            for paths in (self.added, self.modified, self.removed)))  # fmt: skip


def compare(kind: Type, old: Any, new: Any) -> Comparison:
    """How new differs from old; None stands for absent."""
    found = Comparison()
    if old != new:
        _compare(kind, old, new, (), found)
    return found


def _compare(kind: Type, old: Any, new: Any, path: Path, found: Comparison) -> None:
    if old is not None and new is not None and (leaf(kind, old) or leaf(kind, new)):
        if old != new:
            found.modified.add(path)
        return
    side = found.added if old is None else found.removed if new is None else None
    present = new if old is None else old
    if side is not None and (leaf(kind, present) or not present):
        side.add(path)
        return
    before = (
        {element: (child, item) for element, child, item in children(kind, old)} if old is not None else {}
    )
    after = (
        {element: (child, item) for element, child, item in children(kind, new)} if new is not None else {}
    )
    for element in {**before, **after}:
        child = (after.get(element) or before[element])[0]
        left, right = before.get(element, (ANY, None))[1], after.get(element, (ANY, None))[1]
        if left != right:
            _compare(child, left, right, (*path, element), found)
    if side is not None and path:
        side.add(path)


def encode(fields: Fields) -> Obj:
    """The fieldsV1 document of a set."""
    root: Obj = {}
    for path in sorted(fields):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _trimmed(root)


def _trimmed(node: Obj) -> Obj:
    if set(node) == {"."}:
        return {}
    return {element: _trimmed(child) if element != "." else {} for element, child in node.items()}


def decode(document: Obj) -> Fields:
    """The set that a fieldsV1 document writes."""
    found: set[Path] = set()
    _read(document, (), found)
    return frozenset(found)


def _read(node: Obj, path: Path, found: set[Path]) -> None:
    if path and (not node or "." in node):
        found.add(path)
    for element, child in node.items():
        if element != ".":
            _read(child, (*path, element), found)


def with_parents(kind: Type, fields: Fields | set[Path]) -> set[Path]:
    """The set with the named fields above its members, which count as owned with them."""
    found = set(fields)
    for path in fields:
        at = kind
        for index, element in enumerate(path):
            if element.startswith("f:"):
                if element[2:] in at.fields:
                    found.add(path[: index + 1])
                at = at.child(element[2:])
            else:
                at = at.item or ANY
    return found


def readable(path: Path) -> str:
    """A path as error messages write it: `.status.conditions[type="Ready"].status`."""
    return "".join(_readable(element) for element in path)


def _readable(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(text).items()) + "]"
