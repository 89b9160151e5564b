"""Scheduler: runs every job in its own interval, in one thread, and survives a job that never returns.

A job that hangs in the kernel cannot be ended. It is left behind (rule T11) while another thread goes on with
the other jobs. The kernel log is not read here, so it never waits.
"""

import logging
import threading
from collections.abc import Callable, Iterable

import msgspec

from checks.agent.runtime import Runtime
from checks.agent.ticker import DUE_PART, Ticker
from checks.debounce import Instant

JOB_SECONDS = 26.0
"""How long a job may take: a little longer than the longest one that ends by itself (a round of GPUs, 15 s,
and then a call's deadline, 10 s), and a little less than a tick, so that the next tick notices it."""

STUCK_LIMIT = 4
"""Threads that may be left behind. Beyond it jobs wait for one of them, and checks go blind."""

log = logging.getLogger("checks.agent.scheduler")


class Job(msgspec.Struct, frozen=True):
    """Something to do every `every_seconds`. Both callables get the time.

    `run` must not raise. `timed_out` is called instead of it, from another thread, while a run hangs.
    """

    name: str
    every_seconds: float
    run: Callable[[Instant], None]
    timed_out: Callable[[Instant], None]


class _Schedule:
    """One job, when it is due, and since when it has been running (both seconds since boot)."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.due = 0.0
        self.running_since: float | None = None
        self.stuck = False


class Scheduler:
    """Runs `jobs` at the ticks of `ticker`, in their order. `after_job` is called after each one."""

    def __init__(
        self, jobs: Iterable[Job], ticker: Ticker, runtime: Runtime, after_job: Callable[[], None]
    ) -> None:
        self._schedules = [_Schedule(each) for each in jobs]
        self._ticker = ticker
        self._runtime = runtime
        self._after_job = after_job
        self._round_began = 0.0
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._threads = 0
        self._current = 0
        self._started = self._replacement_due = False

    def start(self) -> None:
        """Start with every job due at once; does nothing when already started."""
        with self._lock:
            started, self._started = self._started, True
        if not started:
            self._start_thread()

    def restart(self) -> None:
        """Make every job due at once, because another boot has begun."""
        with self._lock:
            for each in self._schedules:
                each.due = 0.0
        self._wake.set()

    def supervise(self) -> None:
        """Leave behind a job that takes too long, and time out those left behind when they are due.

        To be called at every tick; it also wakes a thread that slept past what is due.
        """
        at = self._ticker.now()
        with self._lock:
            for each in self._schedules:
                since = each.running_since
                if since is not None and not each.stuck and at.uptime - since > JOB_SECONDS:
                    each.stuck = self._replacement_due = True
                    each.due = at.uptime
                    log.warning("a check does not return: %s", each.job.name)
            stuck = [each for each in self._schedules if each.stuck and at.uptime >= each.due]
            replace = self._replacement_due and self._threads <= STUCK_LIMIT
            self._replacement_due = self._replacement_due and not replace
        for each in stuck:
            each.due = at.uptime + each.job.every_seconds
            each.job.timed_out(at)
        if replace:
            self._start_thread()
        if any(at.uptime >= each.due for each in self._schedules):
            self._wake.set()

    def stop(self) -> None:
        """End soon; does not wait for a job that is running."""
        self._stopping.set()
        self._wake.set()

    def _start_thread(self) -> None:
        with self._lock:
            self._threads += 1
            self._current += 1
            number = self._current
        self._runtime.start_thread("scheduler", lambda: self._run(number))

    def _run(self, number: int) -> None:
        self._round_began = self._ticker.now().uptime
        while not self._stopping.is_set():
            at = self._ticker.now()
            schedule = self._next(at)
            if schedule is None:
                self._runtime.wait(self._wake, self._ticker.wait_seconds())
                self._wake.clear()
                self._round_began = self._ticker.now().uptime
                continue
            self._run_job(schedule, at)
            if self._current != number:
                break
        with self._lock:
            self._threads -= 1

    def _run_job(self, schedule: _Schedule, at: Instant) -> None:
        try:
            schedule.job.run(at)
        finally:
            schedule.running_since = None
        if schedule.stuck:
            schedule.stuck = False
            log.info("a check has returned: %s", schedule.job.name)
        self._after_job()

    def _next(self, at: Instant) -> _Schedule | None:
        with self._lock:
            for each in self._schedules:
                if at.uptime >= each.due and each.running_since is None:
                    # Counted from where the round began, so that a slow job makes no other late for its tick.
                    each.due = self._round_began + each.job.every_seconds * DUE_PART
                    if each.due <= at.uptime:
                        each.due = at.uptime + each.job.every_seconds
                    each.running_since = at.uptime
                    return each
        return None
