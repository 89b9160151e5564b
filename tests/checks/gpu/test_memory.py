"""ECC counters, SRAM, row remapping and retired pages."""

import pytest

from checks.check import Check
from checks.finding import Action, Severity
from checks.gpu import remap
from checks.gpu.ecc import CORRECTED, SRAM, UNCORRECTED
from checks.gpu_sample import BoardSample, GpuSnapshot
from checks.policy import GpuLimits, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, gpus, sample


def uncorrected(total: int | None) -> GpuSnapshot:
    return gpus(sample(ONE, ecc_uncorrected=total), sample(TWO))


def storm(harness: GpuHarness, start: int, per_second: float, minutes: int) -> dict[str, Severity]:
    """Look for so many minutes at a counter that grows."""
    for minute in range(1, minutes + 1):
        harness.look(gpus(sample(ONE, ecc_corrected=int(start + per_second * 60 * minute))))
    return {each.code: each.severity for each in harness.findings().values()}


def test_errors_from_before_the_first_look_are_no_finding() -> None:
    assert GpuHarness(UNCORRECTED).look(uncorrected(12), 5) == {}


def test_one_uncorrected_error_is_critical_and_stands_until_the_gpu_is_reset() -> None:
    harness = GpuHarness(UNCORRECTED)
    harness.look(uncorrected(12))
    found = harness.look(uncorrected(13))
    assert list(found) == [f"ecc-uncorrected/{ONE}"]
    assert (found[f"ecc-uncorrected/{ONE}"].severity, found[f"ecc-uncorrected/{ONE}"].action) == (
        Severity.CRITICAL,
        Action.RESET_GPU,
    )
    assert harness.minutes(uncorrected(13), 24 * 60) != {}, "a quiet day clears nothing"
    assert harness.look(uncorrected(0), 2) == {}, "the reset did"
    assert harness.look(uncorrected(1)) != {}


def test_an_error_right_after_a_reset_is_seen() -> None:
    harness = GpuHarness(UNCORRECTED)
    harness.look(uncorrected(12))
    assert harness.look(uncorrected(2)) != {}


def test_a_gpu_that_does_not_count_is_not_judged() -> None:
    for check in (UNCORRECTED, CORRECTED):
        nothing = gpus(sample(ONE, ecc_uncorrected=None, ecc_corrected=None))
        assert GpuHarness(check).look(nothing, 10) == {}


def test_ten_corrected_errors_a_second_warn_only_after_five_minutes() -> None:
    harness = GpuHarness(CORRECTED)
    harness.look(gpus(sample(ONE, ecc_corrected=50_000_000)))
    assert storm(harness, 50_000_000, 11, 4) == {}
    assert storm(harness, 50_000_000 + 11 * 240, 11, 2) == {"ecc-corrected": Severity.WARNING}


def test_a_thousand_corrected_errors_a_second_are_critical_at_the_second_look() -> None:
    harness = GpuHarness(CORRECTED)
    harness.look(gpus(sample(ONE)))
    assert storm(harness, 0, 1500, 1) == {"ecc-corrected": Severity.CRITICAL}


def test_a_storm_of_corrected_errors_is_over_when_it_was_half_as_bad_for_ten_minutes() -> None:
    harness = GpuHarness(CORRECTED)
    harness.look(gpus(sample(ONE)))
    storm(harness, 0, 15, 10)
    assert storm(harness, 15 * 600, 8, 30) != {}, "8 a second is more than half of 10"
    held = gpus(sample(ONE, ecc_corrected=15 * 600 + 8 * 1800))
    assert harness.minutes(held, 8) != {}
    assert harness.minutes(held, 8) == {}


def test_sram_beyond_the_vendors_limit_asks_for_another_node() -> None:
    harness = GpuHarness(SRAM)
    found = harness.look(gpus(sample(ONE, board=BoardSample(sram_exceeded=True)), sample(TWO)))
    assert found[f"sram-threshold/{ONE}"].action is Action.FAILOVER
    replaced = gpus(sample(ONE), sample(TWO))
    assert harness.minutes(replaced, 20) != {}, "one reading without the flag may be wrong"
    assert harness.look(replaced) == {}
    assert GpuHarness(SRAM).look(gpus(sample(ONE, board=BoardSample())), 3) == {}
    assert GpuHarness(SRAM).look(gpus(sample(ONE, board=None)), 3) == {}


@pytest.mark.parametrize(
    ("check", "known", "severity", "action"),
    [
        (remap.PENDING, {"remap_pending": True}, Severity.WARNING, Action.RESET_GPU),
        (remap.FAILURE, {"remap_failure": True}, Severity.CRITICAL, Action.FAILOVER),
        (remap.MANY, {"remapped_rows": 512}, Severity.WARNING, Action.ASK),
        (remap.RETIRED, {"retired_pages": 60}, Severity.WARNING, Action.ASK),
        (remap.RETIRED, {"retired_pages": 1, "retired_pending": True}, Severity.WARNING, Action.ASK),
    ],
)
def test_replaced_memory_is_judged_by_two_looks_and_clears_by_two(
    check: Check, known: dict[str, object], severity: Severity, action: Action
) -> None:
    harness = GpuHarness(check)
    sick = gpus(sample(ONE, **known), sample(TWO))
    assert harness.look(sick) == {}
    found = harness.look(sick)[f"{check.name}/{ONE}"]
    assert (found.severity, found.action, found.subsystem) == (severity, action, "ecc")
    well = gpus(sample(ONE), sample(TWO))
    assert harness.look(well) != {}
    assert harness.look(well) == {}


@pytest.mark.parametrize("check", [remap.PENDING, remap.FAILURE, remap.MANY, remap.RETIRED])
def test_a_board_that_does_not_tell_of_replaced_memory_is_not_judged(check: Check) -> None:
    silent = gpus(sample(ONE, remap_pending=None, remap_failure=None, remapped_rows=None))
    assert GpuHarness(check).look(silent, 3) == {}


def test_limits_come_from_the_policy() -> None:
    strict = Policy(gpu=GpuLimits(remapped_rows=4, retired_pages=2))
    assert GpuHarness(remap.MANY, strict).look(gpus(sample(ONE, remapped_rows=4)), 2) != {}
    assert GpuHarness(remap.RETIRED, strict).look(gpus(sample(ONE, retired_pages=2)), 2) != {}


def test_two_gpus_are_two_findings() -> None:
    both = gpus(sample(ONE, remap_failure=True), sample(TWO, remap_failure=True))
    assert sorted(GpuHarness(remap.FAILURE).look(both, 2)) == [f"remap-failure/{ONE}", f"remap-failure/{TWO}"]
