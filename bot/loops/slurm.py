"""Reads what Slurm's controller says about every node, with one question for the whole cluster.

It only reads. While the controller does not answer, its last answer stays valid.
"""

import asyncio
from collections.abc import Callable, Mapping

import structlog

from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore
from checks.debounce import Instant
from checks.finding import Finding
from checks.slurm.findings import SlurmFindings
from checks.slurm.node import parse

log = structlog.get_logger("bot.lifecycle")


class SlurmUnavailableError(Exception):
    """The controller did not answer; the text says why. Ask again later."""


class SlurmLoop:
    """Judges the rows that `read` gives: the output of `scontrol show nodes`, or SlurmUnavailableError.

    `uptime` gives the seconds of a clock that never steps.
    """

    def __init__(
        self, store: IncidentStore, reports: ReportStore, read: Callable[[], str], uptime: Callable[[], float]
    ) -> None:
        self._store = store
        self._reports = reports
        self._read = read
        self._uptime = uptime
        self._findings = SlurmFindings()

    async def look(self) -> None:
        """Ask the controller once and judge every node of ours."""
        try:
            rows = parse(await asyncio.to_thread(self._read))
        except (SlurmUnavailableError, ValueError) as error:
            self._store.report_trouble("slurm", str(error))
            return
        self._store.report_trouble("slurm", "")
        gpus = {name: self._gpus(name) for name in self._store.nodes or {}}
        found = self._findings.update(rows, gpus, Instant(self._store.now().timestamp(), self._uptime()))
        if _keys(found) != _keys(self._store.slurm or {}) or self._store.slurm is None:
            self._store.changed.notify()
        self._store.slurm = found

    def _gpus(self, node: str) -> int | None:
        """Return how many GPUs the agent sees on the node, None when it does not say."""
        held = self._reports.newest(node)
        gpus = held.report.inventory.gpus if held else None
        return None if gpus is None else len(gpus)


def _keys(found: Mapping[str, tuple[Finding, ...]]) -> set[tuple[str, str]]:
    return {(name, each.key) for name, findings in found.items() for each in findings}
