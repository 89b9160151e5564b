"""Runs the loops: each looks again after its own time, or as soon as something has changed.

APScheduler keeps the times. Only periodic runs are scheduled, never single deadlines: a deadline is data, and
some run finds that it has passed, so nothing depends on a job that a restart would lose.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.incidents.signal import Signal
from bot.metrics import Metrics

log = structlog.get_logger("bot.lifecycle")

AFTER_FAILURE: Final = timedelta(seconds=1)
"""Pause after a run that failed unexpectedly."""

AT_LEAST_EVERY: Final = timedelta(seconds=60)
"""A task runs this often whatever it asked for, in case its own next time is lost."""

JOB_DEFAULTS: Final = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
"""A late run runs late; the default of the library, one second, drops it."""

Clock = Callable[[], datetime]
"""Returns the time now, in UTC."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """One task of the bot. `run` returns after how long to run again, or earlier at one of `signals`.

    A negative time is a pause that no signal shortens, because a dependency asked for it.
    """

    name: str
    signals: tuple[Signal, ...]
    run: Callable[[], Awaitable[timedelta]]


async def run(tasks: Iterable[PeriodicTask], metrics: Metrics, clock: Clock) -> None:
    """Run all tasks until cancelled. A task survives every error: it logs it once and goes on."""
    scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=JOB_DEFAULTS)
    scheduler.add_listener(
        lambda event: _count(event, metrics), EVENT_JOB_MISSED | EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES
    )
    scheduled = [_ScheduledTask(each, scheduler, clock) for each in tasks]
    scheduler.start()
    try:
        for each in scheduled:
            each.start()
        await asyncio.Event().wait()
    finally:
        scheduler.shutdown()


class _ScheduledTask:
    """One task on the scheduler: at most one run at a time, and a signal during a run is not lost."""

    def __init__(self, task: PeriodicTask, scheduler: AsyncIOScheduler, clock: Clock) -> None:
        self._task = task
        self._scheduler = scheduler
        self._clock = clock
        self._running = self._signalled = False
        self._paused_until = datetime.min.replace(tzinfo=UTC)
        self._failed = ""

    def start(self) -> None:
        self._scheduler.add_job(
            self._run,
            "interval",
            seconds=AT_LEAST_EVERY.total_seconds(),
            id=self._task.name,
            next_run_time=self._clock(),
        )
        for signal in self._task.signals:
            signal.subscribe(self._wake)

    def _wake(self) -> None:
        self._signalled = True
        if not self._running:
            self._schedule(self._clock())

    async def _run(self) -> None:
        self._running, self._signalled = True, False
        pause = -AFTER_FAILURE
        try:
            pause = await self._task.run()
            self._failed = ""
        except Exception as error:
            if self._failed != repr(error):
                log.exception("loop_failed", loop=self._task.name)
            self._failed = repr(error)
        finally:
            self._running = False
            now = self._clock()
            self._paused_until = now + abs(pause) if pause < timedelta(0) else now
            again = now if self._signalled else now + abs(pause)
            # Only after the scheduler has accounted for this run: until then it would count a second one.
            asyncio.get_running_loop().call_soon(self._schedule, again)

    def _schedule(self, moment: datetime) -> None:
        job = self._scheduler.get_job(self._task.name)
        if job is not None and not self._running:
            job.modify(next_run_time=max(moment, self._paused_until))


def _count(event: JobEvent, metrics: Metrics) -> None:
    kind = {EVENT_JOB_MISSED: "missed", EVENT_JOB_ERROR: "failed"}.get(event.code, "overrun")
    metrics.rounds.labels(event.job_id, kind).inc()
