"""The ticker: threads that ask wake together, agents do not."""

import itertools
import random

import pytest

from checks.agent.ticker import DUE_PART, JITTER, TICK_SECONDS, Ticker
from checks.gpu.sampler import EVERY_SECONDS
from checks.registry import CHECKS
from tests.checks.agent.stepped import SteppedRuntime


def ticker(seconds: float, seed: int = 1) -> tuple[Ticker, SteppedRuntime]:
    runtime = SteppedRuntime()
    return Ticker(runtime, random.Random(seed), seconds), runtime


def test_whoever_asks_is_told_the_same_tick() -> None:
    asked, runtime = ticker(30.0)
    first = asked.wait_seconds()
    runtime.advance(first / 2)
    assert asked.wait_seconds() == pytest.approx(first / 2)


def test_after_a_tick_there_is_another_a_little_less_than_the_interval_later() -> None:
    asked, runtime = ticker(30.0)
    waits = []
    for _ in range(100):
        runtime.advance(asked.wait_seconds())
        waits.append(asked.wait_seconds())
    assert all(30.0 * (1 - JITTER) <= each <= 30.0 for each in waits)
    assert len(set(waits)) > 90, "no two are the same"


def test_agents_do_not_tick_in_step() -> None:
    waits = sorted(ticker(30.0, seed)[0].wait_seconds() for seed in range(100))
    assert waits[0] < 3.0
    assert waits[-1] > 27.0
    assert all(later - earlier < 3.0 for earlier, later in itertools.pairwise(waits))


@pytest.mark.parametrize("every", sorted({EVERY_SECONDS, *(each.every_seconds for each in CHECKS)}))
def test_every_check_runs_at_the_tick_that_is_nearest_to_its_interval(every: float) -> None:
    ticks = every / TICK_SECONDS
    assert ticks == int(ticks)
    soonest, latest = TICK_SECONDS * (1 - JITTER), TICK_SECONDS
    if every <= 150:
        assert (ticks - 1) * latest < every * DUE_PART < ticks * soonest
