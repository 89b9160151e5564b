"""Slack's rules for a view: a modal or an App Home tab."""

import json
from collections.abc import Iterator
from typing import Any

from tests.lab.slack.blocks import view_block_problems
from tests.lab.slack.elements import IDENTIFIER, plain
from tests.lab.slack.schema import Check, anything, boolean, choice, problem, shape, string
from tests.lab.slack.wire import Json, SlackError, refused

# 250 kB a view (api docs of views.publish and views.open).
VIEW_BYTES = 250_000

_EITHER: dict[str, Check] = {
    "blocks": anything,
    "private_metadata": string(3000, 0),
    "callback_id": IDENTIFIER,
    "external_id": IDENTIFIER,
}
_MODAL = shape(
    {
        **_EITHER,
        "type": choice("modal"),
        "title": plain(24),
        "submit": plain(24),
        "close": plain(24),
        "clear_on_close": boolean,
        "notify_on_close": boolean,
        "submit_disabled": boolean,
    },
    ("type", "title", "blocks"),
)
_HOME = shape({**_EITHER, "type": choice("home")}, ("type", "blocks"))


def refuse_bad_view(view: Any, kind: str) -> Json:
    """The view, when Slack would take it as a `kind` (modal or home); else raise Slack's answer."""
    if not isinstance(view, dict):
        raise refused("invalid_arguments", ["must provide an object [json-pointer:/view]"])
    found = list(_problems(view, kind))
    if found:
        raise refused("invalid_arguments", found)
    if len(json.dumps(view)) > VIEW_BYTES:
        raise SlackError("view_too_large")
    return view


def _problems(view: Json, kind: str) -> Iterator[str]:
    yield from (_MODAL if kind == "modal" else _HOME)(view, "/view")
    if "blocks" not in view:
        return
    yield from view_block_problems(view["blocks"])
    blocks = view["blocks"] if isinstance(view["blocks"], list) else []
    has_input = any(isinstance(block, dict) and block.get("type") == "input" for block in blocks)
    if kind == "modal" and has_input and "submit" not in view:
        yield problem("missing required field: submit", "/view")
