"""slowdown, slowdown-sw and temperature."""

import pytest

from checks.check import Check
from checks.finding import Action, Severity
from checks.gpu.slowdown import HARDWARE_CHECK, SOFTWARE_CHECK, TEMPERATURE
from checks.gpu_sample import Gpus
from checks.policy import GpuLimits, Policy
from tests.checks.gpu.harness import ONE, TWO, Course, gpus, sample

WELL = gpus(sample(ONE), sample(TWO))


def reasons(mask: int | None) -> Gpus:
    return gpus(sample(ONE, reasons=mask), sample(TWO))


@pytest.mark.parametrize(
    ("check", "mask", "severity", "action"),
    [
        (HARDWARE_CHECK, 0x8, Severity.CRITICAL, Action.FAILOVER),
        (HARDWARE_CHECK, 0x48, Severity.CRITICAL, Action.FAILOVER),
        (HARDWARE_CHECK, 0x80 | 0x4, Severity.CRITICAL, Action.FAILOVER),
        (SOFTWARE_CHECK, 0x20, Severity.WARNING, Action.NONE),
    ],
)
def test_a_gpu_is_slow_when_six_looks_of_ten_say_so(
    check: Check, mask: int, severity: Severity, action: Action
) -> None:
    course = Course(check)
    for _ in range(4):
        course.look(reasons(mask))
        course.look(reasons(0x4))
    course.look(reasons(mask))
    assert course.findings() == {}
    found = course.look(reasons(mask))[f"{check.name}/{ONE}"]
    assert (found.severity, found.action) == (severity, action)


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x104, None])
@pytest.mark.parametrize("check", [HARDWARE_CHECK, SOFTWARE_CHECK])
def test_idle_capped_and_set_clocks_are_normal(check: Check, mask: int | None) -> None:
    assert Course(check).look(reasons(mask), 20) == {}


def test_it_clears_after_ten_quiet_minutes() -> None:
    course = Course(HARDWARE_CHECK)
    course.look(reasons(0x8), 6)
    assert course.look(WELL, 9) != {}
    assert course.look(reasons(0x8)) != {}
    assert course.look(WELL, 10) != {}
    assert course.look(WELL) == {}


def test_how_many_looks_it_takes_comes_from_the_policy() -> None:
    eager = Policy(gpu=GpuLimits(slowdown_polls=2))
    assert Course(HARDWARE_CHECK, eager).look(reasons(0x8), 2) != {}


def test_time_spent_slow_counts_though_the_mask_was_clear_when_asked() -> None:
    course = Course(HARDWARE_CHECK)
    for minute in range(7):
        course.look(gpus(sample(ONE, slowed_ns=minute * 40_000_000_000)))
    assert list(course.findings()) == [f"slowdown/{ONE}"]
    brief = Course(HARDWARE_CHECK)
    for minute in range(20):
        brief.look(gpus(sample(ONE, slowed_ns=minute * 5_000_000_000)))
    assert brief.findings() == {}


def test_a_lifetime_of_slow_time_is_no_finding() -> None:
    assert Course(HARDWARE_CHECK).look(gpus(sample(ONE, slowed_ns=10**15)), 20) == {}


def margin(degrees: int | None) -> Gpus:
    return gpus(sample(ONE, margin=degrees))


@pytest.mark.parametrize("degrees", [2, 0, -3])
def test_a_gpu_near_its_limit_warns_at_the_third_look(degrees: int) -> None:
    course = Course(TEMPERATURE)
    assert course.look(margin(degrees), 2) == {}
    found = course.look(margin(degrees))[f"temperature/{ONE}"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.NONE)


def test_a_gpu_that_is_neither_cool_nor_hot_keeps_what_it_has() -> None:
    course = Course(TEMPERATURE)
    assert course.look(margin(4), 30) == {}
    course.look(margin(1), 3)
    assert course.look(margin(5), 30) != {}
    assert course.look(margin(6), 10) != {}
    assert course.look(margin(6)) == {}


def test_a_board_without_a_margin_is_not_judged() -> None:
    assert Course(TEMPERATURE).look(margin(None), 10) == {}
