"""Every step goes on for ever: late, rule, failing or slow, and never twice at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from bot.incidents.signal import Signal
from bot.loops.scheduler import PeriodicTask, run
from bot.metrics import Metrics

LONG = timedelta(hours=1)
LIMIT_SECONDS = 20.0


async def _until(what: Callable[[], object]) -> None:
    until = time.monotonic() + LIMIT_SECONDS
    while not what():
        assert time.monotonic() < until, "it did not happen"
        await asyncio.sleep(0.01)


def _run(
    seconds: float, *tasks: PeriodicTask, meanwhile: Callable[[], Awaitable[None]] | None = None
) -> Metrics:
    metrics = Metrics()

    async def for_a_while() -> None:
        task = asyncio.create_task(run(tasks, metrics, lambda: datetime.now(UTC)))
        await asyncio.sleep(0.1)
        if meanwhile is not None:
            await meanwhile()
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(for_a_while())
    return metrics


def test_a_task_runs_again_after_the_time_it_asked_for() -> None:
    looks: list[float] = []

    async def look() -> timedelta:
        looks.append(time.monotonic())
        return timedelta(seconds=0.1)

    _run(0.0, PeriodicTask("task", (), look), meanwhile=lambda: _until(lambda: len(looks) >= 4))
    assert all(later - earlier > 0.05 for earlier, later in pairwise(looks))


def test_a_signal_wakes_a_task_at_once() -> None:
    looks: list[float] = []
    changed = Signal()

    async def look() -> timedelta:
        looks.append(time.monotonic())
        return LONG

    async def notify() -> None:
        # A signal before the first run asks for no second one.
        await _until(lambda: looks)
        changed.notify()
        await _until(lambda: len(looks) == 2)

    _run(0.3, PeriodicTask("task", (changed,), look), meanwhile=notify)
    assert len(looks) == 2


def test_a_signal_during_a_run_is_not_lost_and_runs_do_not_overlap() -> None:
    state = {"looking": 0, "most": 0, "looks": 0}
    changed = Signal()

    async def look() -> timedelta:
        state["looking"] += 1
        state["looks"] += 1
        state["most"] = max(state["most"], state["looking"])
        await asyncio.sleep(0.15)
        state["looking"] -= 1
        return LONG

    async def notify() -> None:
        await _until(lambda: state["looking"])
        for _ in range(3):
            changed.notify()
        await _until(lambda: state["looks"] == 2)

    metrics = _run(0.6, PeriodicTask("task", (changed,), look), meanwhile=notify)
    assert (state["looks"], state["most"]) == (2, 1)
    assert metrics.registry.get_sample_value(
        "clusterwright_bot_rounds_total", {"round": "task", "kind": "overrun"}
    ) in (None, 0.0)


def test_no_signal_shortens_a_pause_that_a_dependency_asked_for() -> None:
    looks: list[float] = []
    changed = Signal()

    async def look() -> timedelta:
        looks.append(time.monotonic())
        return -timedelta(seconds=30)

    async def notify() -> None:
        changed.notify()

    _run(0.3, PeriodicTask("task", (changed,), look), meanwhile=notify)
    assert len(looks) == 1


def test_a_task_that_fails_goes_on() -> None:
    looks: list[float] = []

    async def look() -> timedelta:
        looks.append(time.monotonic())
        raise RuntimeError("nobody foresaw this")

    _run(0.0, PeriodicTask("task", (), look), meanwhile=lambda: _until(lambda: len(looks) >= 2))
    assert looks[1] - looks[0] > 0.5


def test_a_task_whose_event_loop_was_blocked_runs_late_rather_than_never() -> None:
    looks: list[float] = []

    async def look() -> timedelta:
        looks.append(time.monotonic())
        return timedelta(seconds=0.2)

    free_again: list[float] = []

    async def block() -> None:
        await _until(lambda: looks)
        time.sleep(1.5)
        free_again.append(time.monotonic())
        await _until(lambda: looks[-1] > free_again[0])

    _run(0.0, PeriodicTask("task", (), look), meanwhile=block)
    assert any(later - earlier >= 1.2 for earlier, later in pairwise(looks))
    assert looks[-1] > free_again[0]
