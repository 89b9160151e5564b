"""LIST: selectors, limit and continue over a consistent snapshot."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.errors import ApiError, Obj, bad_request, expired
from tests.lab.kube.embedded.selectors import Predicate, fields_match, labels_match

if TYPE_CHECKING:
    from tests.lab.kube.embedded.registry import Resource
    from tests.lab.kube.embedded.state import Request, State
    from tests.lab.kube.embedded.storage import Key


UNSERVED = frozenset({"resourceVersionMatch", "sendInitialEvents"})
"""Parameters of lists and watches that no program of ours sends."""


def selected_by(request: Request) -> Predicate:
    """The predicate of a request's label and field selectors together."""
    by_label = labels_match(request.query.get("labelSelector", ""))
    by_field = fields_match(request.resource, request.query.get("fieldSelector", ""))
    return lambda obj: by_label(obj) and by_field(obj)


def refuse_unserved(request: Request) -> None:
    """Refuse what this server would not heed, rather than answer in another way than was asked.

    Raises:
        ApiError: 400.
    """
    for parameter in UNSERVED & request.query.keys():
        raise bad_request(f"{parameter}: the embedded lab server does not serve this")


def list_objects(state: State, request: Request) -> Obj:
    """The answer to a LIST.

    Raises:
        ApiError: 400 for a bad parameter, 410 for a revision that is compacted away.
    """
    refuse_unserved(request)
    limit = _number(request.query, "limit")
    start: Key = ("", "")
    token = request.query.get("continue", "")
    if token:
        revision, start = _position(token)
        rows = _snapshot(state, request.resource, revision)
    else:
        revision = state.store.revision
        rows = state.store.at(request.resource.table, revision)
    selected = selected_by(request)
    keys = [
        key
        for key in sorted(rows)
        if key > start and request.namespace in ("", key[0]) and selected(rows[key])
    ]
    page = keys[:limit] if limit else keys
    meta: Obj = {"resourceVersion": str(revision)}
    if len(page) < len(keys):
        meta["continue"] = _token(revision, page[-1])
        if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
            meta["remainingItemCount"] = len(keys) - len(page)
    return {
        "kind": f"{request.resource.kind}List",
        "apiVersion": request.resource.api_version,
        "metadata": meta,
        "items": [_item(request.resource, rows[key]) for key in page],
    }


def _item(resource: Resource, obj: Obj) -> Obj:
    if resource.custom:
        return obj
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _snapshot(state: State, resource: Resource, revision: int) -> dict[Key, Obj]:
    try:
        return state.store.at(resource.table, revision)
    except ApiError as gone:
        message = "The provided continue parameter is too old to display a consistent list result."
        raise expired(message) from gone


def _number(query: object, name: str) -> int:
    text = query.get(name, "") or "0"  # type: ignore[attr-defined]
    if not text.isdigit():
        raise bad_request(f'{name}: Invalid value: "{text}": must be a non-negative integer')
    return int(text)


def _token(revision: int, last: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([revision, *last]).encode()).rstrip(b"=").decode()


def _position(token: str) -> tuple[int, Key]:
    try:
        revision, namespace, name = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(revision), (namespace, name)
    except ValueError as error:
        raise bad_request("continue key is not valid") from error
