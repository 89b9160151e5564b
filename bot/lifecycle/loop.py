"""The loops that keep reports, incidents, Git, Kubernetes and Slack in line, until they are told to stop.

Each looks again after its own time, or when something has changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from bot.lifecycle.cluster import ClusterSync
from bot.lifecycle.decide import Decisions
from bot.lifecycle.desk import Desk
from bot.lifecycle.git import GitSync
from bot.lifecycle.notice import Patience, notice
from bot.lifecycle.reports import ReportBook
from bot.lifecycle.rounds import Bell, Step, run
from bot.lifecycle.slurm import SlurmSync
from bot.lifecycle.threads import Chat, Threads
from bot.records.ledger import Ledger
from reconciler.observe import Observer

log = structlog.get_logger("bot.lifecycle")


@dataclass(frozen=True, slots=True)
class Times:
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
class Outside:
    """The systems that the bot speaks with. `slurm` asks for its rows of nodes, None where there is none."""

    ledger: Ledger
    observer: Observer
    chat: Chat
    slurm: Callable[[], str] | None = None


class Lifecycle:
    """Runs the incidents of one cluster. `heard` is rung when a report brings something new."""

    def __init__(
        self, desk: Desk, book: ReportBook, outside: Outside, patience: Patience, times: Times
    ) -> None:
        self.desk = desk
        self.book = book
        self.heard = Bell()
        self._patience = patience
        self._times = times
        self._cluster = ClusterSync(desk, book, outside.observer, patience.offer_lifetime)
        self.decisions = Decisions(desk, outside.chat, self._cluster, patience.report_interval)
        self._git = GitSync(desk, outside.ledger, self.decisions)
        self._threads = Threads(desk, outside.chat, times.edit_after)
        self._git_news = Bell()
        self._slurm = None if outside.slurm is None else SlurmSync(desk, book, outside.slurm)

    async def run(self) -> None:
        """Run until cancelled."""
        bell = self.desk.bell
        steps = [
            Step("notice", (self.heard, bell), self._notice),
            Step("git-read", (self._git_news,), self._read_git),
            Step("git-write", (bell,), self._write_git),
            Step("nodes", (), self._read_nodes),
            Step("offers", (bell,), self._offer),
            Step("repairs", (), self._follow_repairs),
            Step("threads", (bell,), self._sync_threads),
        ]
        if self._slurm is not None:
            steps.append(Step("slurm", (), self._ask_slurm))
        log.info("lifecycle_started", cluster=self.desk.cluster, sweep=self._times.sweep.total_seconds())
        await run(steps, self.desk.metrics)

    async def _notice(self) -> timedelta:
        notice(self.desk, self.book.all(), self._patience)
        return self._times.sweep

    async def _read_git(self) -> timedelta:
        await self._git.read()
        return self._times.git_poll

    async def _write_git(self) -> timedelta:
        if not self.desk.read_git or await self._git.write():
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
            self._git_news.ring()
        return self._times.repairs_poll

    async def _sync_threads(self) -> timedelta:
        if not self.desk.read_git:
            return self._times.sweep
        wait = await self._threads.sync()
        return timedelta(seconds=-wait) if wait else self._times.sweep
