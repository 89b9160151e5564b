"""Paths on the incident branch. No other module knows a file name. Pure."""

import posixpath
import re
from collections.abc import Collection
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

ROOT: Final = "incidents"
"""Directory of all incidents."""

OPENED: Final = "opened.yaml"
THREAD: Final = "thread.yaml"
CLOSED: Final = "closed.yaml"

RECORD: Final = re.compile(
    r"incidents/\d{4}/\d{2}/(?P<incident>[a-z0-9][a-z0-9.-]*)/repair-(?P<attempt>[1-9]\d{0,2})\.yaml"
)
"""Path of a repair record, relative to the root of the branch."""

APPROVAL: Final = re.compile(r"approval-[1-9]\d{0,2}\.yaml")
"""Name of an approval."""

_DECISIONS: Final = ("approval-", "repair-", "outcome-", CLOSED)
_DEPTH: Final = 5


def incident_directory(incident: str, opened_at: datetime) -> str:
    """Return the directory of an incident."""
    return f"{ROOT}/{opened_at:%Y/%m}/{incident}"


def approval_name(attempt: int) -> str:
    """Return the name of the approval of an attempt."""
    return f"approval-{attempt}.yaml"


def repair_name(attempt: int) -> str:
    """Return the name of the repair record of an attempt."""
    return f"repair-{attempt}.yaml"


def next_rejection_name(names: Collection[str]) -> str:
    """Return the name of the next rejection beside the files `names`."""
    return f"rejected-{1 + sum(name.startswith('rejected-') for name in names)}.yaml"


def outcome_path(record_path: str) -> str:
    """Return the path of the outcome of the record at `record_path`."""
    directory, name = posixpath.split(record_path)
    return f"{directory}/{name.replace('repair-', 'outcome-')}"


def beside(path: str, name: str) -> str:
    """Return the path of the file `name` in the directory of the file `path`."""
    return f"{posixpath.dirname(path)}/{name}"


def kind_of(name: str) -> str:
    """Return the kind of a file by its name: `opened`, `approval`, `repair`, …; empty if it is not YAML."""
    return name.removesuffix(".yaml").split("-")[0] if name.endswith(".yaml") else ""


def is_record(path: str) -> bool:
    """Whether `path` is the path of a repair record."""
    return RECORD.fullmatch(path) is not None


def split_record(path: str) -> tuple[str, str] | None:
    """Return (directory, file name) of a file of an incident, None for any other path."""
    parts = PurePosixPath(path)
    return (str(parts.parent), parts.name) if len(parts.parts) == _DEPTH else None


def open_records(paths: frozenset[str]) -> tuple[str, ...]:
    """Return the records among `paths` that have no outcome and whose incident is not closed."""
    return tuple(
        path
        for path in sorted(paths)
        if is_record(path) and outcome_path(path) not in paths and beside(path, CLOSED) not in paths
    )


def worth_reading(paths: frozenset[str]) -> list[str]:
    """Return the decisions of incidents that are open, or closed with a record that has no outcome."""
    closed = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == CLOSED}
    pending = {
        posixpath.dirname(path) for path in paths if is_record(path) and outcome_path(path) not in paths
    }
    live = {posixpath.dirname(path) for path in paths} - closed | pending
    return sorted(
        path
        for path in paths
        if posixpath.basename(path).startswith(_DECISIONS) and posixpath.dirname(path) in live
    )
