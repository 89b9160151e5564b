"""How events are printed: JSON, one object a line, for programs; columns for people."""

import msgspec

from checks.finding import Severity
from checks.kernel.event import Event


class Shown(msgspec.Struct, frozen=True):
    """An event as `clusterwright classify --format json` prints it. Every field is always there."""

    code: str | None
    subsystem: str
    gpu: str | None
    device: str | None
    severity: Severity
    action: str
    event: bool
    count: int
    line: int | None
    lines: tuple[int, ...]
    companion_of: str | None
    rule: str
    summary: str
    text: str


def json_line(event: Event) -> bytes:
    """Return the event as one JSON object, without a line end."""
    return msgspec.json.encode(
        Shown(
            event.code,
            event.subsystem,
            event.gpu,
            event.device,
            event.severity,
            event.action.value,
            event.event,
            event.count,
            event.lines[0] if event.lines else None,
            event.lines,
            event.companion_of,
            event.rule,
            event.summary,
            event.text,
        )
    )


_WIDTHS = (12, 9, 11, 10, 18, 13, 7)


def table_head() -> str:
    """Return the heading of the table."""
    return _row(("LINE", "SEVERITY", "ACTION", "SUBSYSTEM", "CODE", "GPU", "COUNT"), "WHAT IT MEANS")


def table_row(event: Event) -> str:
    """Return the event as one row; the last column is as long as its sentence."""
    lines = f"{event.lines[0]}-{event.lines[-1]}" if len(event.lines) > 1 else "".join(map(str, event.lines))
    cells = (
        lines,
        event.severity.value if event.event else "-",
        event.action.value if event.event else "-",
        event.subsystem,
        event.code or "-",
        event.gpu or "-",
        str(event.count),
    )
    companion = f" (belongs to {event.companion_of})" if event.companion_of else ""
    return _row(cells, (event.summary or event.text) + companion)


def _row(cells: tuple[str, ...], last: str) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + " " + last
