"""Journals in the first published form → the form of today, so that an upgrade does not strand a repair. Pure.

The first form knew no list of what a repair holds. It named the destructive step `reset`, and it noted in entries
called `release` and `record` that an ended repair was released and recorded.
"""

from collections.abc import Mapping
from typing import Any

HOLDING = ("lock", "cordon")
"""Steps that take something, by their names in that form."""


def upgraded(status: Any) -> Any:
    """Return a raw status in the form of today; anything but a journal in the first form is returned unchanged."""
    steps = status.get("steps") if isinstance(status, Mapping) else None
    if not isinstance(steps, list) or not all(isinstance(each, Mapping) for each in steps):
        return status
    if not steps or any("destructive" in each for each in steps):
        return status
    done = {str(each.get("name")): each for each in steps if each.get("state") == "done"}
    entries = [_entry(each) for each in steps if each.get("name") not in ("release", "record")]
    held = [each for each in entries if each.get("name") in HOLDING and "release" not in done]
    before = status.get("preState")
    return {
        **status,
        "steps": entries,
        "undo": [{"step": each["name"], "takenAt": each.get("startedAt")} for each in held],
        "released": "release" in done,
        "recorded": str(done["record"].get("message") or "recorded") if "record" in done else "",
        "preState": {**before, "machine": before.get("system", "")}
        if isinstance(before, Mapping)
        else before,
    }


def _entry(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {**raw, "destructive": raw.get("name") == "reset", "heartbeat": raw.get("seen") or ""}
