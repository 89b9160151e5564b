"""Processes, from the files of procfs that never hang: reading `cmdline` of a stuck process does."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

STAT_LIMIT = 1024
"""Most bytes of a `stat` file: one line of 52 fields, with a name of at most 64 characters."""


class Process(msgspec.Struct, frozen=True):
    """One process: its short name, its state's letter, its parent, and its start in ticks since boot."""

    pid: int
    name: str
    state: str
    parent: int
    started: int


def read(root: Path, pid: int) -> Process | None:
    """Return the process, None when it has ended."""
    return _parse(pid, _stat(f"{root}/proc/{pid}/stat"))


def every(root: Path) -> Iterator[Process] | None:
    """Return all processes, None when there is no procfs; those that end meanwhile are left out."""
    place = f"{root}/proc"
    try:
        with os.scandir(place) as entries:
            found = [each.name for each in entries]
    except OSError:
        return None
    if "self" not in found:
        return None
    # There are thousands of them, and strings take a tenth of the time of Paths.
    processes = (_parse(int(each), _stat(f"{place}/{each}/stat")) for each in found if each.isdigit())
    return (each for each in processes if each is not None)


def _stat(file: str) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, STAT_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _parse(pid: int, stat: str) -> Process | None:
    # The name is in brackets and may contain any character, brackets too.
    head, _, tail = stat.rpartition(") ")
    fields = tail.split(" ", 20)
    try:
        return Process(pid, head.partition(" (")[2], fields[0], int(fields[1]), int(fields[19]))
    except (IndexError, ValueError):
        return None
