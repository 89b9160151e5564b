"""Rounds: steps that look again and again, each after its own time or as soon as a bell rings.

APScheduler keeps the times. Only periodic sweeps are scheduled, never single deadlines: a deadline is data
that some sweep finds passed, so nothing depends on a job that a restart would lose.
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
"""Pause after a step that failed in a way nobody foresaw."""

AT_LEAST_EVERY: Final = timedelta(seconds=60)
"""A step is looked at this often whatever it asked for, should its own next time be lost."""

JOB_DEFAULTS: Final = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
"""A late sweep runs late; the library's own default, one second, drops it."""


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """What one round does. `look` answers after how long to look again; a negative time is slept out even
    if a bell rings, because a dependency asked for patience."""

    name: str
    signals: tuple[Signal, ...]
    look: Callable[[], Awaitable[timedelta]]


async def run(steps: Iterable[PeriodicTask], metrics: Metrics) -> None:
    """Run all steps until cancelled. A step never dies of an error: it says so once and goes on."""
    scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=JOB_DEFAULTS)
    scheduler.add_listener(
        lambda event: _count(event, metrics), EVENT_JOB_MISSED | EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES
    )
    rounds = [_ScheduledTask(each, scheduler) for each in steps]
    scheduler.start()
    try:
        for each in rounds:
            each.begin()
        await asyncio.Event().wait()
    finally:
        scheduler.shutdown()


class _ScheduledTask:
    """One step on the scheduler: at most one look at a time, and a ring during a look is not lost."""

    def __init__(self, step: PeriodicTask, scheduler: AsyncIOScheduler) -> None:
        self._step = step
        self._scheduler = scheduler
        self._looking = self._rung = False
        self._deaf_until = datetime.min.replace(tzinfo=UTC)
        self._failed = ""

    def begin(self) -> None:
        self._scheduler.add_job(
            self._look,
            "interval",
            seconds=AT_LEAST_EVERY.total_seconds(),
            id=self._step.name,
            next_run_time=datetime.now(UTC),
        )
        for signal in self._step.signals:
            signal.subscribe(self._wake)

    def _wake(self) -> None:
        self._rung = True
        if not self._looking:
            self._at(datetime.now(UTC))

    async def _look(self) -> None:
        self._looking, self._rung = True, False
        pause = -AFTER_FAILURE
        try:
            pause = await self._step.look()
            self._failed = ""
        except Exception as error:
            if self._failed != repr(error):
                log.exception("loop_failed", loop=self._step.name)
            self._failed = repr(error)
        finally:
            self._looking = False
            now = datetime.now(UTC)
            self._deaf_until = now + abs(pause) if pause < timedelta(0) else now
            again = now if self._rung else now + abs(pause)
            # Once this look has been accounted for: until then the scheduler would take it for a second one.
            asyncio.get_running_loop().call_soon(self._at, again)

    def _at(self, moment: datetime) -> None:
        job = self._scheduler.get_job(self._step.name)
        if job is not None and not self._looking:
            job.modify(next_run_time=max(moment, self._deaf_until))


def _count(event: JobEvent, metrics: Metrics) -> None:
    kind = {EVENT_JOB_MISSED: "missed", EVENT_JOB_ERROR: "failed"}.get(event.code, "overrun")
    metrics.rounds.labels(event.job_id, kind).inc()
