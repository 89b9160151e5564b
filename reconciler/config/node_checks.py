"""`kind: NodeChecks` → one policy a pool, validated with the structs that the agent uses.

msgspec stops at the first error. The reader removes the wrong value and validates the rest again, so that it
reports all errors at once.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from checks.policy import Policy
from checks.registry import NAMES
from reconciler.config.document import Document, KeyPath, Problem

_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)


def policy(document: Document, where: KeyPath) -> Policy | list[Problem]:
    """Return the policy at `where` in the document, or every problem with it."""
    written = document.value
    for key in where:
        written = written[key]
    rest = copy.deepcopy(written)
    faults: list[Problem] = []
    while True:
        try:
            found = msgspec.convert(rest, Policy)
            break
        except msgspec.ValidationError as error:
            text, path = _read(str(error))
            faults.append(_fault(document, (*where, *path), text))
            if not _take_out(rest, path):
                return faults
    faults += _unknown_checks(document, where, found)
    return faults or found


def with_gpus(written: Policy, gpus: int) -> Policy:
    """Return the policy with the pool's number of GPUs if the policy sets none."""
    if written.expected.gpus is not None:
        return written
    expected = msgspec.structs.replace(written.expected, gpus=gpus)
    return msgspec.structs.replace(written, expected=expected)


def _read(error: str) -> tuple[str, KeyPath]:
    """Return the error that msgspec reports, and its path."""
    text, _, place = error.partition(" - at `$")
    steps = (match.groups() for match in _STEP.finditer(place))
    path: KeyPath = tuple(name if name is not None else int(index) for name, index in steps if index != "...")
    unknown = _UNKNOWN.match(text)
    return ("unknown field", (*path, unknown[1])) if unknown else (text, path)


def _take_out(value: Any, path: KeyPath) -> bool:
    """Remove the value at `path`; remove a whole list, because its other items would change their index."""
    whole = next((index for index, key in enumerate(path) if isinstance(key, int)), len(path))
    *before, last = path[:whole] or (None,)
    for key in before:
        value = value[key]
    return isinstance(value, dict) and value.pop(last, None) is not None


def _unknown_checks(document: Document, where: KeyPath, found: Policy) -> Iterator[Problem]:
    for index, name in enumerate(found.disabled):
        if name not in NAMES:
            text = f"{name}: no such check; there are {', '.join(sorted(NAMES))}"
            yield _fault(document, (*where, "disabled", index), text)


def _fault(document: Document, path: KeyPath, text: str) -> Problem:
    return Problem(document.file, document.line(path), f"{'.'.join(map(str, path))}: {text}")
