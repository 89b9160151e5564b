"""The tasks that keep reports, incidents, Git, Kubernetes, Slurm and Slack in line.

Each task looks again after its own time, or when something has changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.chat import Chat
from bot.incidents.reports import ReportStore
from bot.incidents.signal import Signal
from bot.incidents.store import IncidentStore
from bot.loops.cluster_state import ClusterState
from bot.loops.decide import Decisions
from bot.loops.detect import DetectionTimes, detect
from bot.loops.git import GitLoop
from bot.loops.incident_log import IncidentLog
from bot.loops.kubernetes import KubernetesLoop
from bot.loops.scheduler import PeriodicTask, run
from bot.loops.slurm import SlurmLoop
from bot.loops.threads import ThreadLoop

log = structlog.get_logger("bot.lifecycle")


@dataclass(frozen=True, slots=True)
class LoopIntervals:
    """How often to look. `sweep` is the longest time until the bot sees that a deadline has passed."""

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
    """The systems that the bot talks to. `slurm` returns Slurm's rows of nodes, None where there is no Slurm.

    `uptime` gives the seconds of a clock that never steps.
    """

    incident_log: IncidentLog
    cluster: ClusterState
    chat: Chat
    uptime: Callable[[], float]
    slurm: Callable[[], str] | None = None


class Lifecycle:
    """Runs the incidents of one cluster. Notify `report_arrived` when a report brings something new."""

    def __init__(
        self,
        store: IncidentStore,
        reports: ReportStore,
        systems: ExternalSystems,
        detection: DetectionTimes,
        intervals: LoopIntervals,
    ) -> None:
        self.store = store
        self.reports = reports
        self.report_arrived = Signal()
        self._detection = detection
        self._intervals = intervals
        self._kubernetes = KubernetesLoop(store, reports, systems.cluster, detection.offer_lifetime)
        self.decisions = Decisions(store, systems.chat, self._kubernetes, detection.report_interval)
        self._git = GitLoop(store, systems.incident_log, self.decisions)
        self._threads = ThreadLoop(store, systems.chat, intervals.edit_after)
        self._git_changed = Signal()
        self._slurm = (
            None if systems.slurm is None else SlurmLoop(store, reports, systems.slurm, systems.uptime)
        )

    async def run(self) -> None:
        """Run until cancelled."""
        log.info("lifecycle_started", cluster=self.store.cluster, sweep=self._intervals.sweep.total_seconds())
        await run(self.tasks(), self.store.metrics, self.store.now)

    def tasks(self) -> tuple[PeriodicTask, ...]:
        """Return every task, in the order in which a change travels through them."""
        changed = self.store.changed
        tasks = (
            PeriodicTask("nodes", (), self._read_nodes),
            PeriodicTask("git-read", (self._git_changed,), self._read_git),
            PeriodicTask("notice", (self.report_arrived, changed), self._detect),
            PeriodicTask("offers", (changed,), self._offer),
            PeriodicTask("git-write", (changed,), self._write_git),
            PeriodicTask("repairs", (), self._read_repairs),
            PeriodicTask("threads", (changed,), self._sync_threads),
        )
        if self._slurm is None:
            return tasks
        return (*tasks, PeriodicTask("slurm", (), self._ask_slurm))

    async def _detect(self) -> timedelta:
        detect(self.store, self.reports.all(), self._detection)
        return self._intervals.sweep

    async def _read_git(self) -> timedelta:
        await self._git.read()
        return self._intervals.git_poll

    async def _write_git(self) -> timedelta:
        if not self.store.read_git or await self._git.write():
            return self._intervals.git_poll
        return -max(self._intervals.git_retry, timedelta(seconds=self._git.retry_after))

    async def _read_nodes(self) -> timedelta:
        await self._kubernetes.read_nodes()
        return self._intervals.nodes_poll

    async def _ask_slurm(self) -> timedelta:
        if self._slurm is not None:
            await self._slurm.look()
        return self._intervals.slurm_poll

    async def _offer(self) -> timedelta:
        await self._kubernetes.offer(self._intervals.offer_refresh)
        return self._intervals.sweep

    async def _read_repairs(self) -> timedelta:
        if await self._kubernetes.read_repairs():
            # The outcome is in Git, or soon will be.
            self._git_changed.notify()
        return self._intervals.repairs_poll

    async def _sync_threads(self) -> timedelta:
        if not self.store.read_git:
            return self._intervals.sweep
        wait = await self._threads.sync()
        return timedelta(seconds=-wait) if wait else self._intervals.sweep
