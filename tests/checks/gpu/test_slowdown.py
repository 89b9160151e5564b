"""slowdown, slowdown-sw and temperature."""

import pytest

from checks.check import Check
from checks.finding import Action, Severity
from checks.gpu.slowdown import HARDWARE_CHECK, SOFTWARE_CHECK, TEMPERATURE
from checks.gpu_sample import GpuSnapshot
from checks.policy import GpuLimits, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, gpus, sample

WELL = gpus(sample(ONE), sample(TWO))


def reasons(mask: int | None) -> GpuSnapshot:
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
    harness = GpuHarness(check)
    for _ in range(4):
        harness.look(reasons(mask))
        harness.look(reasons(0x4))
    harness.look(reasons(mask))
    assert harness.findings() == {}
    found = harness.look(reasons(mask))[f"{check.name}/{ONE}"]
    assert (found.severity, found.action) == (severity, action)


@pytest.mark.parametrize("mask", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x104, None])
@pytest.mark.parametrize("check", [HARDWARE_CHECK, SOFTWARE_CHECK])
def test_idle_capped_and_set_clocks_are_normal(check: Check, mask: int | None) -> None:
    assert GpuHarness(check).look(reasons(mask), 20) == {}


def test_it_clears_after_ten_quiet_minutes() -> None:
    harness = GpuHarness(HARDWARE_CHECK)
    harness.look(reasons(0x8), 6)
    assert harness.look(WELL, 9) != {}
    assert harness.look(reasons(0x8)) != {}
    assert harness.look(WELL, 10) != {}
    assert harness.look(WELL) == {}


def test_how_many_looks_it_takes_comes_from_the_policy() -> None:
    eager = Policy(gpu=GpuLimits(slowdown_polls=2))
    assert GpuHarness(HARDWARE_CHECK, eager).look(reasons(0x8), 2) != {}


def test_time_spent_slow_counts_though_the_mask_was_clear_when_asked() -> None:
    harness = GpuHarness(HARDWARE_CHECK)
    for minute in range(7):
        harness.look(gpus(sample(ONE, slowed_ns=minute * 40_000_000_000)))
    assert list(harness.findings()) == [f"slowdown/{ONE}"]
    brief = GpuHarness(HARDWARE_CHECK)
    for minute in range(20):
        brief.look(gpus(sample(ONE, slowed_ns=minute * 5_000_000_000)))
    assert brief.findings() == {}


def test_a_lifetime_of_slow_time_is_no_finding() -> None:
    assert GpuHarness(HARDWARE_CHECK).look(gpus(sample(ONE, slowed_ns=10**15)), 20) == {}


def margin(degrees: int | None) -> GpuSnapshot:
    return gpus(sample(ONE, margin=degrees))


@pytest.mark.parametrize("degrees", [2, 0, -3])
def test_a_gpu_near_its_limit_warns_at_the_third_look(degrees: int) -> None:
    harness = GpuHarness(TEMPERATURE)
    assert harness.look(margin(degrees), 2) == {}
    found = harness.look(margin(degrees))[f"temperature/{ONE}"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.NONE)


def test_a_gpu_that_is_neither_cool_nor_hot_keeps_what_it_has() -> None:
    harness = GpuHarness(TEMPERATURE)
    assert harness.look(margin(4), 30) == {}
    harness.look(margin(1), 3)
    assert harness.look(margin(5), 30) != {}
    assert harness.look(margin(6), 10) != {}
    assert harness.look(margin(6)) == {}


def test_a_board_without_a_margin_is_not_judged() -> None:
    assert GpuHarness(TEMPERATURE).look(margin(None), 10) == {}
