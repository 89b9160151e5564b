"""A cluster repository in a directory → every problem that the programs would find in it."""

from pathlib import Path

from reconciler.config.document import Problem
from reconciler.config.reader import ConfigErrors, read


def lint(directory: Path) -> tuple[Problem, ...]:
    """Return every fault in the top-level files of `directory`; raises OSError when it cannot be listed."""
    contents: dict[str, bytes] = {}
    unread = []
    for file in sorted(directory.iterdir()):
        if not file.name.endswith(".yaml"):
            continue
        try:
            contents[file.name] = file.read_bytes()
        except OSError as error:
            unread.append(Problem(file.name, 1, f"cannot be read ({error.strerror})"))
    found = read(contents)
    faults = found.faults if isinstance(found, ConfigErrors) else ()
    return (*unread, *faults)
