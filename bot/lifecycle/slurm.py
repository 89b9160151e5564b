"""Slurm and the desk kept in line: what the controller says of every node, asked once for the whole cluster.

Reads only. While the controller does not answer, what was known stands: no node becomes healthy or sick.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

import structlog

from bot.lifecycle.desk import Desk
from bot.lifecycle.reports import ReportBook
from checks.debounce import Instant
from checks.finding import Finding
from checks.slurm.findings import SlurmFindings
from checks.slurm.node import parse

log = structlog.get_logger("bot.lifecycle")


class SlurmUnavailableError(Exception):
    """The controller did not answer; the text says why. Ask again later."""


class SlurmSync:
    """Judges the rows that `read` gives: the output of `scontrol show nodes`, or SlurmUnavailableError."""

    def __init__(self, desk: Desk, book: ReportBook, read: Callable[[], str]) -> None:
        self._desk = desk
        self._book = book
        self._read = read
        self._findings = SlurmFindings()

    async def look(self) -> None:
        """Ask the controller once and judge every node of ours."""
        try:
            rows = parse(await asyncio.to_thread(self._read))
        except (SlurmUnavailableError, ValueError) as error:
            self._desk.report_trouble("slurm", str(error))
            return
        self._desk.report_trouble("slurm", "")
        gpus = {name: self._gpus(name) for name in self._desk.nodes or {}}
        found = self._findings.update(rows, gpus, Instant(time.time(), time.monotonic()))
        if _keys(found) != _keys(self._desk.slurm or {}) or self._desk.slurm is None:
            self._desk.bell.ring()
        self._desk.slurm = found

    def _gpus(self, node: str) -> int | None:
        """Return how many GPUs the agent sees on the node, None when it does not say."""
        held = self._book.newest(node)
        gpus = held.report.inventory.gpus if held else None
        return None if gpus is None else len(gpus)


def _keys(found: Mapping[str, tuple[Finding, ...]]) -> set[tuple[str, str]]:
    return {(name, each.key) for name, findings in found.items() for each in findings}
