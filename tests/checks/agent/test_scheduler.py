"""The rounds of the checks: each in its own time, none kept waiting by one that hangs."""

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from checks.agent.scheduler import LOOK_SECONDS, Rounds, run_check
from checks.agent.ticker import TICK_SECONDS, Ticker
from checks.check import WELL, Check, CheckContext, CheckResult, Observation, Past, Unobservable
from checks.debounce import Instant
from checks.policy import Policy

PATIENCE = 10.0


class Keeper:
    """Notes what the rounds bring."""

    def __init__(self) -> None:
        self.looks: list[tuple[str, CheckResult]] = []
        self.dropped: list[str] = []
        self.news = threading.Condition()

    def past(self, check: str) -> Past:
        return {}

    def facts(self) -> Mapping[type, Any]:
        return {}

    def take_fetched(self, found: object) -> None:
        """Nothing here is about what doors bring."""

    def take_look(self, check: Check, look: CheckResult, at: Instant) -> None:
        with self.news:
            self.looks.append((check.name, look))
            self.news.notify_all()

    def drop_check(self, check: str) -> None:
        with self.news:
            self.dropped.append(check)
            self.news.notify_all()

    def wait_for(self, name: str, times: int = 1) -> CheckResult:
        """Return the newest look of the check once there were so many."""

        def found() -> list[CheckResult]:
            return [look for check, look in self.looks if check == name]

        with self.news:
            assert self.news.wait_for(lambda: len(found()) >= times, PATIENCE), self.looks
            return found()[-1]


class Clock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.uptime = 1000.0

    def __call__(self) -> Instant:
        return Instant(1_796_000_000.0 + self.uptime, self.uptime)

    def passes(self, seconds: float) -> CheckResult:
        """Stand for a look that takes so long."""
        self.uptime += seconds
        return WELL


class Gauge:
    """What the door of these tests gives."""


class Door:
    gives: type = Gauge
    every_seconds = 60.0

    def __init__(self, answers: list[object]) -> None:
        self.answers = answers
        self.closed = False

    def fetch(self, context: CheckContext) -> object:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def check(name: str, look: CheckResult | Exception | threading.Event = WELL, **more: Any) -> Check:
    def run(_: CheckContext) -> CheckResult:
        if isinstance(look, threading.Event):
            look.wait(PATIENCE)
            return WELL
        if isinstance(look, Exception):
            raise look
        return look

    return Check(name=name, about="", look=run, **more)


class Site:
    """Rounds over some checks, ended with the test."""

    def __init__(
        self,
        *checks: Check,
        doors: tuple[Door, ...] = (),
        disabled: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        self.keeper, self.clock = Keeper(), clock or Clock()
        self.policy = Policy(disabled=disabled)
        metronome = Ticker(self.clock, random.Random(1), TICK_SECONDS)
        self.rounds = Rounds(Path("/"), (checks, doors), self.keeper, lambda: self.policy, metronome)
        self.doors = doors

    def __enter__(self) -> "Site":
        self.rounds.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.rounds.stop()


def test_every_check_looks_once_at_the_start_and_then_in_its_own_time() -> None:
    with Site(check("often", every_seconds=20.0), check("seldom", every_seconds=600.0)) as site:
        site.keeper.wait_for("often")
        site.keeper.wait_for("seldom")
        for times in (2, 3, 4):
            site.clock.uptime += 20
            site.rounds.supervise()
            site.keeper.wait_for("often", times)
        assert [name for name, _ in site.keeper.looks].count("seldom") == 1


def test_ticks_that_come_early_and_slow_looks_make_no_check_late() -> None:
    clock = Clock()
    slow = Check(name="slow", about="", look=lambda _: clock.passes(20.0))
    with Site(slow, check("late"), clock=clock) as site:
        site.keeper.wait_for("late")
        for times in (2, 3, 4):
            # The slow look has taken 20 s of each minute; the tick comes 6 s early.
            clock.uptime += 54 - 20
            site.rounds.supervise()
            site.keeper.wait_for("late", times)


def test_a_check_that_raises_is_blind_and_says_where() -> None:
    with Site(check("bad", ValueError("7 is no number")), check("good")) as site:
        look = site.keeper.wait_for("bad")
        assert isinstance(look, Unobservable)
        assert look.reason.startswith("ValueError: 7 is no number (test_rounds.py:")
        site.keeper.wait_for("good")


def test_a_look_that_hangs_is_left_behind_and_the_others_go_on() -> None:
    hangs = threading.Event()
    with Site(check("stuck", hangs), check("good", every_seconds=60.0)) as site:
        site.clock.uptime += LOOK_SECONDS + 1
        site.rounds.supervise()
        assert site.keeper.wait_for("stuck") == Unobservable("check timed out after 26 s")
        site.keeper.wait_for("good")
        site.clock.uptime += 60
        site.rounds.supervise()
        site.keeper.wait_for("stuck", 2)
        hangs.set()
        assert site.keeper.wait_for("stuck", 3) == WELL


def test_only_so_many_looks_are_left_behind() -> None:
    before = threading.active_count()
    hangs = threading.Event()
    with Site(*(check(f"stuck-{number}", hangs) for number in range(8)), check("good")) as site:
        for number in range(8):
            site.clock.uptime += LOOK_SECONDS + 1
            site.rounds.supervise()
            if number < 5:
                site.keeper.wait_for(f"stuck-{number}")
        assert threading.active_count() - before <= 5
        hangs.set()
        site.clock.uptime += 1
        site.rounds.supervise()
        site.keeper.wait_for("good")


def test_a_check_that_is_switched_off_is_dropped() -> None:
    with Site(check("off"), check("on"), disabled=("off",)) as site:
        site.keeper.wait_for("on")
        assert site.keeper.dropped == ["off"]


def test_what_a_door_fetched_is_what_its_checks_look_at() -> None:
    gauge = Gauge()

    def look(context: CheckContext) -> CheckResult:
        return Observation(readings={"same": float(context.held(Gauge) is gauge)})

    needy = Check(name="needy", about="", look=look, needs=Gauge)
    with Site(needy, doors=(Door([gauge]),)) as site:
        assert site.keeper.wait_for("needy") == Observation(readings={"same": 1.0})
    assert site.doors[0].closed


@pytest.mark.parametrize("answer", [Unobservable("no library"), RuntimeError("no library")])
def test_a_door_that_cannot_fetch_makes_its_checks_blind(answer: object) -> None:
    with Site(check("needy", needs=Gauge), doors=(Door([answer]),)) as site:
        look = site.keeper.wait_for("needy")
        assert isinstance(look, Unobservable)
        assert "no library" in look.reason


def test_a_check_whose_door_has_not_fetched_yet_is_blind() -> None:
    context = CheckContext(root=Path("/"), now=0.0, uptime=0.0, policy=Policy())
    assert run_check(check("needy", needs=Gauge), context) == Unobservable("Gauge was not fetched yet")


def test_another_boot_begins_with_everything_at_once() -> None:
    with Site(check("seldom", every_seconds=600.0)) as site:
        site.keeper.wait_for("seldom")
        site.rounds.restart()
        site.keeper.wait_for("seldom", 2)
