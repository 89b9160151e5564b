"""nvml-unavailable and driver-unresponsive: when NVML does not answer."""

import pytest

from checks.finding import Action, Severity
from checks.gpu import ecc, recovery_action
from checks.gpu.driver_unresponsive import CHECK as UNRESPONSIVE
from checks.gpu.nvml_unavailable import CHECK as UNAVAILABLE
from checks.gpu_sample import ENDED, GpuSnapshot, NvmlRefused
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, bus, gpus, sample

WELL = gpus(sample(ONE))
BEFORE_GRACE, AFTER_GRACE = 100.0, 400.0


def refused(code: int, **known: object) -> GpuSnapshot:
    return gpus(pci=(bus(ONE),), library=None, driver=(ONE,), refused=NvmlRefused("nvmlInit", code), **known)


def missed(count: int) -> GpuSnapshot:
    return gpus(sample(ONE), library=None, misses=count, missed=f"{ONE}: no answer in 10 s")


@pytest.mark.parametrize(
    ("code", "name", "severity"),
    [
        (9, "nvml-unavailable", Severity.CRITICAL),
        (17, "nvml-unavailable", Severity.CRITICAL),
        (18, "driver-mismatch", Severity.CRITICAL),
        (4, "nvml-blind", Severity.WARNING),
        (12, "nvml-blind", Severity.WARNING),
        (999, "nvml-blind", Severity.WARNING),
        (ENDED, "nvml-blind", Severity.WARNING),
    ],
)
def test_a_library_that_cannot_be_opened_is_told_after_two_looks(
    code: int, name: str, severity: Severity
) -> None:
    harness = GpuHarness(UNAVAILABLE, uptime=AFTER_GRACE)
    assert harness.look(refused(code)) == {}
    found = harness.look(refused(code))[name]
    assert (found.severity, found.action, found.gpu) == (severity, Action.ASK, None)
    assert found.subsystem == ("agent" if name == "nvml-blind" else "nvml")
    assert f"({code})" in found.evidence
    assert harness.look(WELL) == {}


def test_a_driver_that_is_not_loaded_is_the_nodes_fault_whatever_the_library_says() -> None:
    found = GpuHarness(UNAVAILABLE).look(
        GpuSnapshot(pci=(bus(ONE),), driver=None, refused=NvmlRefused("nvmlInitWithFlags", 12)), 2
    )
    assert list(found) == ["nvml-unavailable"]


def test_nothing_is_judged_in_the_first_five_minutes() -> None:
    harness = GpuHarness(UNAVAILABLE, uptime=BEFORE_GRACE)
    assert harness.look(refused(9), 3) == {}
    assert harness.look(refused(9), 3) != {}
    assert GpuHarness(UNRESPONSIVE, uptime=BEFORE_GRACE).look(missed(2), 3) == {}


def test_a_node_without_gpus_needs_no_nvml() -> None:
    assert GpuHarness(UNAVAILABLE).look(GpuSnapshot(pci=(), refused=NvmlRefused("nvmlInit", 12)), 3) == {}
    assert GpuHarness(UNAVAILABLE).look(GpuSnapshot(pci=None), 3) == {}
    passed_through = GpuSnapshot(pci=(bus(ONE, driver="vfio-pci"),), refused=NvmlRefused("nvmlInit", 9))
    assert GpuHarness(UNAVAILABLE).look(passed_through, 3) == {}


def test_calls_that_are_not_permitted_are_the_agents_blindness() -> None:
    denied = gpus(sample(ONE, denied=(("nvmlDeviceGetMigMode", 4),)), sample(TWO))
    found = GpuHarness(UNAVAILABLE).look(denied, 2)["nvml-blind"]
    assert found.evidence == f"denied for {ONE}"


def test_a_gpu_that_may_not_be_opened_is_the_agents_blindness_too() -> None:
    found = GpuHarness(UNAVAILABLE).look(gpus(sample(ONE, failed=4), sample(TWO)), 2)
    assert [(name, each.evidence) for name, each in found.items()] == [("nvml-blind", f"denied for {ONE}")]


@pytest.mark.parametrize("code", [8, 11, 17, 20, 12345])
def test_a_gpu_that_cannot_be_read_for_an_unknown_reason_is_left_to_a_person(code: int) -> None:
    harness = GpuHarness(UNAVAILABLE)
    sick = gpus(sample(ONE, failed=code), sample(TWO))
    assert harness.look(sick) == {}
    found = harness.look(sick)[f"gpu-unreadable/{ONE}"]
    assert (found.severity, found.action) == (Severity.UNKNOWN, Action.ASK)
    assert f"({code})" in found.evidence
    assert harness.look(WELL) == {}


@pytest.mark.parametrize("code", [3, 13, 15, 16, 999])
def test_a_gpu_that_cannot_be_read_for_a_reason_that_others_judge_is_not_told_twice(code: int) -> None:
    assert GpuHarness(UNAVAILABLE).look(gpus(sample(ONE, failed=code), sample(TWO)), 3) == {}


def test_a_gpu_that_is_left_alone_is_not_judged_by_what_it_said_last() -> None:
    alone = gpus(sample(ONE, failed=17), sample(TWO), excluded=(ONE,))
    assert GpuHarness(UNAVAILABLE).look(alone, 3) == {}


def test_one_missed_deadline_warns_and_two_ask_for_a_reboot() -> None:
    harness = GpuHarness(UNRESPONSIVE)
    found = harness.look(missed(1))["driver-unresponsive"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.NONE)
    found = harness.look(missed(2))["driver-unresponsive"]
    assert (found.severity, found.action, found.gpu) == (Severity.CRITICAL, Action.REBOOT, None)
    assert found.evidence == f"{ONE}: no answer in 10 s; deadlines missed in a row: 2"


def test_it_takes_three_good_rounds_to_be_well_again() -> None:
    harness = GpuHarness(UNRESPONSIVE)
    harness.look(missed(2))
    assert harness.look(WELL, 2) != {}
    assert harness.look(missed(1)) != {}
    assert harness.look(WELL, 2) != {}
    assert harness.look(WELL) == {}


def test_a_silent_library_is_told_once_and_not_by_every_check() -> None:
    for check in (ecc.UNCORRECTED, recovery_action.CHECK):
        harness = GpuHarness(check)
        assert harness.look(refused(9), 5) == {}
        assert harness.blind() == []


def test_what_was_raised_stays_while_nobody_can_look() -> None:
    harness = GpuHarness(recovery_action.CHECK)
    harness.look(gpus(sample(ONE, recovery_action=1)), 2)
    assert harness.look(refused(9), 30) != {}
    assert harness.look(WELL, 2) == {}
