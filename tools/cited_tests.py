"""Keeps the tests that the docs name true: each `tests/….py::test_name` in the docs is a test in that file.

`--check` exits with 1 and names each that is not. Without it, a test that moved gets its new path.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CITED = re.compile(r"`(?P<path>tests/[\w./-]+\.py)::(?P<name>test_\w+)`")
DEFINED = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)

Tests = Mapping[str, tuple[str, ...]]
"""Name of a test → the files that define it."""


def defined(files: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the tests in `files`, which are pairs of path and source."""
    found: dict[str, tuple[str, ...]] = {}
    for path, source in files:
        for name in DEFINED.findall(source):
            found[name] = (*found.get(name, ()), path)
    return found


def corrected(page: str, tests: Tests) -> tuple[str, list[str]]:
    """Return the page with the path of each test that moved, and what is wrong with it as it stands."""
    wrong: list[str] = []

    def correct(cited: re.Match[str]) -> str:
        paths = tests.get(cited["name"], ())
        if cited["path"] in paths:
            return cited[0]
        if len(paths) != 1:
            wrong.append(
                f"{cited[0]} names no test; {'it is in ' + ', '.join(paths) if paths else 'it is gone'}"
            )
            return cited[0]
        wrong.append(f"{cited[0]} moved to {paths[0]}")
        return f"`{paths[0]}::{cited['name']}`"

    return CITED.sub(correct, page), wrong


def main(arguments: list[str]) -> str | int:
    """Check or correct every page; return 0, or what is wrong, one line each."""
    sources = sorted((ROOT / "tests").rglob("*.py"))
    tests = defined((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in sources)
    left: list[str] = []
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]):
        page = path.read_text(encoding="utf-8")
        new, wrong = corrected(page, tests)
        if wrong and "--check" not in arguments:
            path.write_text(new, encoding="utf-8")
            wrong = corrected(new, tests)[1]
        left += [f"{path.relative_to(ROOT)}: {each}" for each in wrong]
    return "\n".join([*left, "correct what moved with `python -m tools.cited_tests`"]) if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
