"""Processes, by what procfs shows of them without asking them: `cmdline` of a stuck one hangs its reader."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from checks.host.read import names, text


class Process(msgspec.Struct, frozen=True):
    """One process: its short name, its state's letter, its parent, and its start in ticks since boot."""

    pid: int
    name: str
    state: str
    parent: int
    started: int


def read(root: Path, pid: int) -> Process | None:
    """Return the process, None when it has ended."""
    found = text(root / "proc" / str(pid) / "stat")
    if found is None:
        return None
    # The name stands in brackets and may hold any letter, brackets too.
    head, _, tail = found.rpartition(") ")
    fields = tail.split(" ")
    try:
        return Process(pid, head.partition(" (")[2], fields[0], int(fields[1]), int(fields[19]))
    except (IndexError, ValueError):
        return None


def every(root: Path) -> Iterator[Process] | None:
    """Return all processes, None when there is no procfs; those that end meanwhile are left out."""
    found = names(root / "proc")
    if found is None or "self" not in found:
        return None
    processes = (read(root, int(each)) for each in found if each.isdigit())
    return (each for each in processes if each is not None)
