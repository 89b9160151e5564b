"""Reading small files of sysfs and procfs, which may vanish or refuse at any moment."""

import os
from pathlib import Path

FILE_LIMIT = 4 << 20
"""Bytes read of one file; the largest that is read here, a mountinfo of some thousand mounts, is a tenth."""


def text(file: Path | str) -> str | None:
    """Return the content of a file without surrounding blanks, None when it cannot be read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        parts = []
        size = 0
        while size < FILE_LIMIT and (part := os.read(descriptor, 65_536)):
            parts.append(part)
            size += len(part)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "surrogateescape").strip()


def number(file: Path | str) -> int | None:
    """Return the whole number that a file holds, None when there is none."""
    found = text(file)
    try:
        return int(found) if found is not None else None
    except ValueError:
        return None


def names(directory: Path | str) -> list[str] | None:
    """Return what is in a directory, sorted, None when it cannot be read."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - names are what is wanted
    except OSError:
        return None


def under(root: Path, path: str) -> Path:
    """Return where the node's `path` is under `root`."""
    return root / path.lstrip("/")
