"""The scheduler: each job runs in its own interval, and one that hangs keeps none waiting."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from checks.agent.scheduler import JOB_SECONDS, STUCK_LIMIT, Job, Scheduler
from checks.agent.ticker import TICK_SECONDS, Ticker
from checks.debounce import Instant
from tests.checks.agent.stepped import SteppedRuntime

FOR_EVER = 1e12


class Site:
    """A scheduler of some jobs, ended with the test. `runs` and `timeouts` name jobs, in order."""

    def __init__(self) -> None:
        self.runtime = SteppedRuntime()
        self.ticker = Ticker(self.runtime, random.Random(1), TICK_SECONDS)
        self.release = threading.Event()
        self.runs: list[str] = []
        self.timeouts: list[str] = []
        self.done = 0
        self.scheduler: Scheduler | None = None

    def job(self, name: str, every: float = 60.0, work: Callable[[], object] = lambda: None) -> Job:
        def run(_: Instant) -> None:
            self.runs.append(name)
            work()

        return Job(name, every, run, lambda _: self.timeouts.append(name))

    def hang(self) -> None:
        self.runtime.wait(self.release, FOR_EVER)

    def start(self, *jobs: Job) -> None:
        self.scheduler = Scheduler(jobs, self.ticker, self.runtime, self.count)
        self.scheduler.start()
        self.runtime.settle()

    def count(self) -> None:
        self.done += 1

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass, at the end of which the reading thread supervises."""
        assert self.scheduler is not None
        self.runtime.advance(seconds)
        self.scheduler.supervise()
        self.runtime.settle()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    if site.scheduler is not None:
        site.scheduler.stop()
    site.release.set()
    site.runtime.settle()
    assert site.runtime.threads == 0


def test_every_job_runs_at_the_start_and_then_in_its_own_interval(site: Site) -> None:
    site.start(site.job("often", 20.0), site.job("seldom", 600.0))
    assert site.runs == ["often", "seldom"]
    for _ in range(3):
        site.pass_time(20)
    assert site.runs == ["often", "seldom", "often", "often", "often"]
    assert site.done == 5


def test_a_scheduler_that_is_started_twice_runs_every_job_once(site: Site) -> None:
    site.start(site.job("one"))
    assert site.scheduler is not None
    site.scheduler.start()
    site.runtime.settle()
    assert (site.runs, site.runtime.threads) == (["one"], 1)


def test_ticks_that_come_early_and_slow_jobs_make_no_job_late(site: Site) -> None:
    site.start(site.job("slow", work=lambda: site.runtime.advance(20.0)), site.job("late"))
    for times in (2, 3, 4):
        # The slow job has taken 20 s of each minute; the tick comes 6 s early.
        site.pass_time(54 - 20)
        assert site.runs.count("late") == times


def test_a_job_that_hangs_is_left_behind_and_the_others_go_on(site: Site) -> None:
    site.start(site.job("stuck", work=site.hang), site.job("good"))
    assert site.runs == ["stuck"]
    site.pass_time(JOB_SECONDS)
    assert (site.runs, site.timeouts) == (["stuck"], []), "it has until then"
    site.pass_time(1)
    assert (site.runs, site.timeouts) == (["stuck", "good"], ["stuck"])
    site.pass_time(60)
    assert (site.runs, site.timeouts) == (["stuck", "good", "good"], ["stuck", "stuck"])
    site.release.set()
    site.runtime.settle()
    site.pass_time(60)
    assert site.runs == ["stuck", "good", "good", "stuck", "good"], "a job that has returned runs again"
    assert (site.timeouts, site.runtime.threads) == (["stuck", "stuck"], 1)


def test_only_so_many_jobs_are_left_behind(site: Site) -> None:
    jobs = [site.job(f"stuck-{number}", FOR_EVER, site.hang) for number in range(8)]
    site.start(*jobs, site.job("good"))
    for _ in range(8):
        site.pass_time(JOB_SECONDS + 1)
    assert site.runs == [f"stuck-{number}" for number in range(STUCK_LIMIT + 1)]
    assert site.runtime.threads == STUCK_LIMIT + 1
    site.release.set()
    site.pass_time(1)
    assert "good" in site.runs


def test_a_restart_makes_every_job_due(site: Site) -> None:
    site.start(site.job("seldom", 600.0))
    assert site.scheduler is not None
    site.scheduler.restart()
    site.runtime.settle()
    assert site.runs == ["seldom", "seldom"]
