"""The part of a page that a program writes: everything between two marker lines."""

from collections.abc import Sequence
from pathlib import Path

BEGIN = "<!-- generated: begin -->"
"""Line after which the generated part starts."""

END = "<!-- generated: end -->"
"""Line before which it ends."""


def replaced(page: str, part: str) -> str:
    """Return `page` with `part` between its markers; ValueError when it has not one of each, in order."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"must have one line {BEGIN!r} and, after it, one line {END!r}")
    return f"{before}{BEGIN}\n\n{part.strip()}\n\n{END}{after}"


def main(page: Path, part: str, module: str, arguments: Sequence[str]) -> str | int:
    """Write `part` into `page`, or with `--check` compare; return 0, or what is wrong in one line."""
    if list(arguments) not in ([], ["--check"]):
        return f"usage: python -m {module} [--check]"
    try:
        old = page.read_text(encoding="utf-8")
        new = replaced(old, part)
    except (OSError, ValueError) as error:
        return f"{page}: {error}"
    if arguments and new != old:
        return f"{page.name} is stale; update it with `python -m {module}`, then commit it"
    if new != old:
        page.write_text(new, encoding="utf-8")
    return 0
