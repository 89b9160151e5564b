"""Slurm and the desk kept in line: what the controller says of every node, asked once for the whole cluster.

Reads only. While the controller does not answer, what was known stands: nobody is healthy or sick for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import structlog

from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore
from checks.check import Scene
from checks.finding import Finding
from checks.policy import Policy
from checks.rounds import look_once
from checks.slurm.node import SlurmNode, parse
from checks.slurm.state import CHECKS, Expected
from checks.watch import Moment, Watch

log = structlog.get_logger("bot.lifecycle")

NOWHERE: Final = Path("/")
"""Root that a scene has to name; these checks read no files."""


class SlurmUnavailableError(Exception):
    """The controller did not answer; the text says why. Ask again later."""


class SlurmLoop:
    """Watches the rows that `read` gives: the output of `scontrol show nodes`, or SlurmUnavailableError."""

    def __init__(self, store: IncidentStore, reports: ReportStore, read: Callable[[], str]) -> None:
        self._store = store
        self._reports = reports
        self._read = read
        self._watches: dict[str, Watch] = {}

    async def look(self) -> None:
        """Ask the controller once and judge every node of ours."""
        try:
            rows = parse(await asyncio.to_thread(self._read))
        except (SlurmUnavailableError, ValueError) as error:
            self._store.report_trouble("slurm", str(error))
            return
        self._store.report_trouble("slurm", "")
        known = dict(self._known(rows))
        self._watches = {name: self._watches.get(name, Watch()) for name in known}
        for name, row in known.items():
            self._fold(name, row)
        found = {name: tuple(watch.findings()) for name, watch in self._watches.items()}
        if _keys(found) != _keys(self._store.slurm or {}) or self._store.slurm is None:
            self._store.changed.notify()
        self._store.slurm = found

    def _known(self, rows: tuple[SlurmNode, ...]) -> Iterator[tuple[str, SlurmNode]]:
        """Yield the rows by the Kubernetes node they are about; rows about none of ours are left out."""
        nodes = self._store.nodes or {}
        for row in rows:
            names = (row.kubernetes_node, row.name, row.hostname)
            name = next((each for each in names if each in nodes), None)
            if name is not None:
                yield name, row

    def _fold(self, name: str, row: SlurmNode) -> None:
        held = self._reports.newest(name)
        gpus = held.report.inventory.gpus if held else None
        at = Moment(time.time(), time.monotonic())
        watch = self._watches[name]
        fetched: dict[type, object] = {
            SlurmNode: row,
            Expected: Expected(None if gpus is None else len(gpus)),
        }
        for check in CHECKS:
            past = watch.past(check.name)
            scene = Scene(
                root=NOWHERE, now=at.now, uptime=at.uptime, policy=Policy(), past=past, fetched=fetched
            )
            watch.fold(check, look_once(check, scene), at)


def _keys(found: Mapping[str, tuple[Finding, ...]]) -> set[tuple[str, str]]:
    return {(name, each.key) for name, findings in found.items() for each in findings}
