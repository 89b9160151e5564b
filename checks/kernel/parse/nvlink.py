"""Xid 144-150: NVLink generation 5, decoded by the vendor's sub-code table (section 3.5).

The decode beats the word Fatal or Nonfatal in the line. Where the bits sit depends on the driver branch; with
the branch unknown both layouts are tried and must agree. What cannot be decoded is unknown, never nothing.
"""

import re

from checks.finding import Action, Severity
from checks.kernel.catalogue import Layout, Nvlink5Row, nvlink5
from checks.kernel.event import Verdict

CODES = frozenset(("144", "145", "146", "147", "148", "149", "150"))
"""Xids that this module judges."""

UNDECODABLE = Verdict(Severity.UNKNOWN, Action.ASK, "3.5 no match")
"""Verdict of a line that no row, or rows that disagree, explain."""

NEW_LAYOUT_BRANCH = 575
"""First driver branch with the sub-code in bits 6:0 (vendor Xid catalogue)."""

_LINE = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]{1,31}(?: Degraded)?) +(?:Fatal|Non-?[Ff]atal) +XC(?P<xc>-?\d{1,3}) +i-?\d{1,3}"
    r" +Link +(?P<link>-?\d{1,3}) *\( *0x(?P<intr>[0-9a-fA-F]{8})\b(?: +0x(?P<status>[0-9a-fA-F]{8})\b)?"
)


def judge(code: str, message: str, branch: int | None) -> Verdict:
    """Return the verdict of the sub-code in `message`; `branch` is the driver's major version if known."""
    line = _LINE.search(message)
    if line is None:
        return UNDECODABLE
    matches = [row for row in nvlink5() if row.xid == code and _matches(row, line, branch)]
    if not matches or len({(row.severity, row.action) for row in matches}) > 1:
        return UNDECODABLE
    row = matches[0]
    return Verdict(row.severity, row.action, f"3.5 {row.bucket}, look at {row.look_at}")


def part(message: str) -> str | None:
    """Return unit and link, which tell two NVLink faults of one GPU apart."""
    line = _LINE.search(message)
    return f"{line['unit'].replace(' ', '_')}.link.{int(line['link'])}" if line else None


def _matches(row: Nvlink5Row, line: re.Match[str], branch: int | None) -> bool:
    if row.status and (line["status"] is None or int(line["status"], 16) not in row.status):
        return False
    return any(
        layout.unit == line["unit"] and int(line["intr"], 16) & layout.mask == layout.value
        for layout in _layouts(row, branch)
    )


def _layouts(row: Nvlink5Row, branch: int | None) -> tuple[Layout, ...]:
    if branch is None:
        return row.before_r575, row.from_r575
    return (row.from_r575,) if branch >= NEW_LAYOUT_BRANCH else (row.before_r575,)
