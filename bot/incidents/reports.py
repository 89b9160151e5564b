"""The newest report of each node, and its age by the clock of the bot."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from checks.report import HeldReport, NodeReport


class Reception(Enum):
    """What became of a report: `new` says something new, `same` does not, `stale` was not taken."""

    NEW = "new"
    SAME = "same"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class ReceivedReport:
    """A report, and when it arrived (UTC)."""

    report: NodeReport
    received_at: datetime


class ReportStore:
    """Holds one report per node. A report replaces an older one of the same boot, or one of another boot."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._held: dict[str, ReceivedReport] = {}

    def accept(self, report: NodeReport) -> Reception:
        """Take the report unless a newer one of the same boot is held.

        The same report again, because its answer was lost, makes the held report fresh again.
        """
        held = self._held.get(report.node)
        same_boot = held is not None and held.report.boot_id == report.boot_id
        if held is not None and same_boot and report.sequence < held.report.sequence:
            return Reception.STALE
        changed = held is None or not same_boot or _content(held.report) != _content(report)
        self._held[report.node] = ReceivedReport(report, self._clock())
        return Reception.NEW if changed else Reception.SAME

    def newest(self, node: str) -> HeldReport | None:
        """Return the node's newest report with its age, None when there is none."""
        held = self._held.get(node)
        if held is None:
            return None
        age = (self._clock() - held.received_at).total_seconds()
        return HeldReport(age_seconds=max(0.0, age), report=held.report)

    def all(self) -> dict[str, ReceivedReport]:
        """Return every held report by node."""
        return dict(self._held)


def _content(report: NodeReport) -> tuple[object, ...]:
    return report.findings, report.blind_spots
