"""The metronome: threads that ask wake together, agents do not."""

import itertools
import random
import time

import pytest

from checks import registry
from checks.agent.ticker import DUE_PART, JITTER, TICK_SECONDS, Ticker
from checks.debounce import Instant


def metronome(seconds: float, seed: int = 1) -> Ticker:
    return Ticker(lambda: Instant(0.0, 0.0), random.Random(seed), seconds)


def test_whoever_asks_is_told_the_same_tick() -> None:
    asked = metronome(30.0)
    first, second = asked.wait_seconds(), asked.wait_seconds()
    assert 0 <= first - second < 1.0


def test_after_a_tick_there_is_another() -> None:
    asked = metronome(0.02)
    asked.wait_seconds()
    time.sleep(0.03)
    assert 0.02 * (1 - JITTER) <= asked.wait_seconds() <= 0.02


def test_agents_do_not_tick_in_step() -> None:
    waits = sorted(metronome(30.0, seed).wait_seconds() for seed in range(100))
    assert waits[0] < 3.0
    assert waits[-1] > 27.0
    assert all(later - earlier < 3.0 for earlier, later in itertools.pairwise(waits))


@pytest.mark.parametrize(
    "every", sorted({each.every_seconds for each in (*registry.CHECKS, *registry.doors())})
)
def test_every_check_looks_at_the_tick_that_is_nearest_to_its_time(every: float) -> None:
    ticks = every / TICK_SECONDS
    assert ticks == int(ticks)
    soonest, latest = TICK_SECONDS * (1 - JITTER), TICK_SECONDS
    if every <= 150:
        assert (ticks - 1) * latest < every * DUE_PART < ticks * soonest
