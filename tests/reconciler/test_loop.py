"""A loop goes on after an error, loses no wake, and stops after the pass that it is in."""

import threading
from collections.abc import Callable
from datetime import timedelta

from structlog.testing import capture_logs

from reconciler.loop import Loop

HOUR = timedelta(hours=1)


def started(loop: Loop) -> threading.Thread:
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    return thread


def ends(thread: threading.Thread) -> bool:
    thread.join(20)
    return not thread.is_alive()


def counting(loops: list[Loop], *passes: Callable[[Loop], object]) -> Callable[[], None]:
    """Do something else in each pass, and stop in the last one."""
    left = list(passes)

    def work() -> None:
        left.pop(0)(loops[0])

    return work


def test_an_error_ends_its_pass_alone_and_is_logged() -> None:
    done: list[str] = []

    def fail(_loop: Loop) -> None:
        raise RuntimeError("broken")

    loops: list[Loop] = []
    passes = (fail, lambda _loop: done.append("went on"), lambda loop: loop.stop())
    loops.append(Loop("sample", counting(loops, *passes), timedelta(milliseconds=1)))
    with capture_logs() as logs:
        loops[0].run()
    assert done == ["went on"]
    assert [(each["event"], each["loop"]) for each in logs] == [("pass failed", "sample")]


def test_a_wake_during_a_pass_leads_to_another_pass() -> None:
    loops: list[Loop] = []
    loops.append(Loop("sample", counting(loops, lambda loop: loop.wake(), lambda loop: loop.stop()), HOUR))
    assert ends(started(loops[0]))


def test_a_wake_while_it_waits_begins_a_pass_and_only_one() -> None:
    begun = threading.Semaphore(0)
    loop = Loop("sample", begun.release, HOUR)
    thread = started(loop)
    assert begun.acquire(timeout=20)
    loop.wake()
    assert begun.acquire(timeout=20)
    loop.stop()
    assert ends(thread)
    assert not begun.acquire(blocking=False)


def test_a_stop_during_a_pass_lets_it_end_and_begins_no_other() -> None:
    inside, go_on, count = threading.Event(), threading.Event(), []

    def work() -> None:
        inside.set()
        go_on.wait(20)
        count.append("ended")

    loop = Loop("sample", work, timedelta(milliseconds=1))
    thread = started(loop)
    assert inside.wait(20)
    loop.stop()
    assert thread.is_alive()
    go_on.set()
    assert ends(thread)
    assert count == ["ended"]


def test_a_stop_before_the_start_begins_nothing() -> None:
    count: list[str] = []
    loop = Loop("sample", lambda: count.append("pass"), HOUR)
    loop.stop()
    loop.run()
    assert count == []


def test_passes_come_at_their_interval_without_a_wake() -> None:
    loops: list[Loop] = []
    nothing: Callable[[Loop], object] = lambda _loop: None  # noqa: E731 - a pass, listed twice below
    work = counting(loops, nothing, nothing, lambda loop: loop.stop())
    loops.append(Loop("sample", work, timedelta(milliseconds=1)))
    assert ends(started(loops[0]))
