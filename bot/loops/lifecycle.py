"""The loops that keep reports, incidents, Git, Kubernetes and Slack in line, until they are told to stop.

Each looks again after its own time, or when something has changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.chat import Chat
from bot.incidents.reports import ReportStore
from bot.incidents.signal import Signal
from bot.incidents.store import IncidentStore
from bot.loops.decide import Decisions
from bot.loops.detect import DetectionTimes, notice
from bot.loops.git import GitLoop
from bot.loops.incident_log import IncidentLog
from bot.loops.kubernetes import KubernetesLoop
from bot.loops.scheduler import PeriodicTask, run
from bot.loops.slurm import SlurmLoop
from bot.loops.threads import ThreadLoop
from reconciler.kube.read import KubernetesReader

log = structlog.get_logger("bot.lifecycle")


@dataclass(frozen=True, slots=True)
class LoopIntervals:
    """How often to look. `sweep` is the longest time until a deadline is seen to have passed."""

    sweep: timedelta
    git_poll: timedelta
    git_retry: timedelta
    nodes_poll: timedelta
    repairs_poll: timedelta
    offer_refresh: timedelta
    edit_after: timedelta
    slurm_poll: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ExternalSystems:
    """The systems that the bot speaks with. `slurm` asks for its rows of nodes, None where there is none."""

    incident_log: IncidentLog
    reader: KubernetesReader
    chat: Chat
    slurm: Callable[[], str] | None = None


class Lifecycle:
    """Runs the incidents of one cluster. `report_arrived` is rung when a report brings something new."""

    def __init__(
        self,
        store: IncidentStore,
        reports: ReportStore,
        outside: ExternalSystems,
        detection: DetectionTimes,
        times: LoopIntervals,
    ) -> None:
        self.store = store
        self.reports = reports
        self.report_arrived = Signal()
        self._detection = detection
        self._times = times
        self._cluster = KubernetesLoop(store, reports, outside.reader, detection.offer_lifetime)
        self.decisions = Decisions(store, outside.chat, self._cluster, detection.report_interval)
        self._git = GitLoop(store, outside.incident_log, self.decisions)
        self._threads = ThreadLoop(store, outside.chat, times.edit_after)
        self._git_news = Signal()
        self._slurm = None if outside.slurm is None else SlurmLoop(store, reports, outside.slurm)

    async def run(self) -> None:
        """Run until cancelled."""
        changed = self.store.changed
        steps = [
            PeriodicTask("notice", (self.report_arrived, changed), self._notice),
            PeriodicTask("git-read", (self._git_news,), self._read_git),
            PeriodicTask("git-write", (changed,), self._write_git),
            PeriodicTask("nodes", (), self._read_nodes),
            PeriodicTask("offers", (changed,), self._offer),
            PeriodicTask("repairs", (), self._follow_repairs),
            PeriodicTask("threads", (changed,), self._sync_threads),
        ]
        if self._slurm is not None:
            steps.append(PeriodicTask("slurm", (), self._ask_slurm))
        log.info("lifecycle_started", cluster=self.store.cluster, sweep=self._times.sweep.total_seconds())
        await run(steps, self.store.metrics)

    async def _notice(self) -> timedelta:
        notice(self.store, self.reports.all(), self._detection)
        return self._times.sweep

    async def _read_git(self) -> timedelta:
        await self._git.read()
        return self._times.git_poll

    async def _write_git(self) -> timedelta:
        if not self.store.read_git or await self._git.write():
            return self._times.git_poll
        return -max(self._times.git_retry, timedelta(seconds=self._git.retry_after))

    async def _read_nodes(self) -> timedelta:
        await self._cluster.read_nodes()
        return self._times.nodes_poll

    async def _ask_slurm(self) -> timedelta:
        if self._slurm is not None:
            await self._slurm.look()
        return self._times.slurm_poll

    async def _offer(self) -> timedelta:
        await self._cluster.offer(self._times.offer_refresh)
        return self._times.sweep

    async def _follow_repairs(self) -> timedelta:
        if await self._cluster.follow_repairs():
            # The outcome is in Git, or about to be.
            self._git_news.notify()
        return self._times.repairs_poll

    async def _sync_threads(self) -> timedelta:
        if not self.store.read_git:
            return self._times.sweep
        wait = await self._threads.sync()
        return timedelta(seconds=-wait) if wait else self._times.sweep
