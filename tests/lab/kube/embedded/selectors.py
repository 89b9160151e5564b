"""Label and field selectors: text → predicate on an object."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.lab.kube.embedded.errors import Obj, bad_request

if TYPE_CHECKING:
    from tests.lab.kube.embedded.registry import Resource

Predicate = Callable[[Obj], bool]

_KEY = r"[A-Za-z0-9]([\w./-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^\s*(?P<key>{_KEY})\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)\s*$")
_EQUAL = re.compile(rf"^\s*(?P<key>{_KEY})\s*(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)\s*$")
_EXISTS = re.compile(rf"^\s*(?P<not>!?)\s*(?P<key>{_KEY})\s*$")

FIELDS: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "status.phase", "spec.serviceAccountName", "spec.restartPolicy"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "events": ("involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "reason", "type"),
}
"""Fields beyond metadata.name and metadata.namespace that the real server can select by."""


def labels_match(selector: str) -> Predicate:
    """The predicate of a labelSelector parameter; an empty one takes all.

    Raises:
        ApiError: 400, the text is no selector.
    """
    terms = [_label_term(part) for part in re.split(r",(?![^(]*\))", selector) if part.strip()]
    return lambda obj: all(term(obj["metadata"].get("labels") or {}) for term in terms)


def _label_term(text: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(text):
        key, wanted = found["key"], {v.strip() for v in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: key in labels and labels[key] in wanted
        return lambda labels: labels.get(key) not in wanted
    if found := _EQUAL.match(text):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(text):
        key, absent = found["key"], bool(found["not"])
        return lambda labels: (key in labels) != absent
    raise bad_request(f"unable to parse requirement: {text!r} is not a label selector")


def label_selector_match(selector: Obj | None) -> Callable[[dict[str, str]], bool]:
    """The predicate of a LabelSelector object (policy/v1: an empty one takes all, None takes none)."""
    if selector is None:
        return lambda labels: False
    equal = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []

    def matches(labels: dict[str, str]) -> bool:
        return all(labels.get(k) == v for k, v in equal.items()) and all(
            _expression(e, labels) for e in expressions
        )

    return matches


def _expression(expression: Obj, labels: dict[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def fields_match(resource: Resource, selector: str) -> Predicate:
    """The predicate of a fieldSelector parameter; an empty one takes all.

    Raises:
        ApiError: 400, no selector or a field the real server cannot select by.
    """
    terms: list[tuple[str, bool, str]] = []
    known = ("metadata.name", "metadata.namespace", *FIELDS.get(resource.table, ()))
    for part in filter(None, selector.split(",")):
        found = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if found is None:
            raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
        if found[1] not in known:
            raise bad_request(f'field label not supported: "{found[1]}"')
        terms.append((found[1], found[2] != "!=", found[3]))
    return lambda obj: all((_text_at(obj, path) == value) is wanted for path, wanted, value in terms)


def _text_at(obj: Obj, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = (value or {}).get(part)
    if isinstance(value, bool):
        return str(value).lower()
    if path == "spec.unschedulable":
        return "false"
    return value or ""
