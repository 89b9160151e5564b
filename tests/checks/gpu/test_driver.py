"""nvml-unavailable and driver-unresponsive: when NVML does not answer."""

import pytest

from checks.finding import Action, Severity
from checks.gpu import ecc, recovery_action
from checks.gpu.driver_unresponsive import CHECK as UNRESPONSIVE
from checks.gpu.nvml_unavailable import CHECK as UNAVAILABLE
from checks.gpu_sample import ENDED, Gpus, Refused
from tests.checks.gpu.harness import ONE, TWO, Course, bus, gpus, sample

WELL = gpus(sample(ONE))
BEFORE_GRACE, AFTER_GRACE = 100.0, 400.0


def refused(code: int, **known: object) -> Gpus:
    return gpus(pci=(bus(ONE),), library=None, driver=(ONE,), refused=Refused("nvmlInit", code), **known)


def missed(count: int) -> Gpus:
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
    course = Course(UNAVAILABLE, uptime=AFTER_GRACE)
    assert course.look(refused(code)) == {}
    found = course.look(refused(code))[name]
    assert (found.severity, found.action, found.gpu) == (severity, Action.ASK, None)
    assert found.subsystem == ("agent" if name == "nvml-blind" else "nvml")
    assert f"({code})" in found.evidence
    assert course.look(WELL) == {}


def test_a_driver_that_is_not_loaded_is_the_nodes_fault_whatever_the_library_says() -> None:
    found = Course(UNAVAILABLE).look(
        Gpus(pci=(bus(ONE),), driver=None, refused=Refused("nvmlInitWithFlags", 12)), 2
    )
    assert list(found) == ["nvml-unavailable"]


def test_nothing_is_judged_in_the_first_five_minutes() -> None:
    course = Course(UNAVAILABLE, uptime=BEFORE_GRACE)
    assert course.look(refused(9), 3) == {}
    assert course.look(refused(9), 3) != {}
    assert Course(UNRESPONSIVE, uptime=BEFORE_GRACE).look(missed(2), 3) == {}


def test_a_node_without_gpus_needs_no_nvml() -> None:
    assert Course(UNAVAILABLE).look(Gpus(pci=(), refused=Refused("nvmlInit", 12)), 3) == {}
    assert Course(UNAVAILABLE).look(Gpus(pci=None), 3) == {}
    passed_through = Gpus(pci=(bus(ONE, driver="vfio-pci"),), refused=Refused("nvmlInit", 9))
    assert Course(UNAVAILABLE).look(passed_through, 3) == {}


def test_calls_that_are_not_permitted_are_the_agents_blindness() -> None:
    denied = gpus(sample(ONE, denied=(("nvmlDeviceGetMigMode", 4),)), sample(TWO))
    found = Course(UNAVAILABLE).look(denied, 2)["nvml-blind"]
    assert found.evidence == f"denied for {ONE}"


def test_a_gpu_that_may_not_be_opened_is_the_agents_blindness_too() -> None:
    found = Course(UNAVAILABLE).look(gpus(sample(ONE, failed=4), sample(TWO)), 2)
    assert [(name, each.evidence) for name, each in found.items()] == [("nvml-blind", f"denied for {ONE}")]


@pytest.mark.parametrize("code", [8, 11, 17, 20, 12345])
def test_a_gpu_that_cannot_be_read_for_an_unknown_reason_is_left_to_a_person(code: int) -> None:
    course = Course(UNAVAILABLE)
    sick = gpus(sample(ONE, failed=code), sample(TWO))
    assert course.look(sick) == {}
    found = course.look(sick)[f"gpu-unreadable/{ONE}"]
    assert (found.severity, found.action) == (Severity.UNKNOWN, Action.ASK)
    assert f"({code})" in found.evidence
    assert course.look(WELL) == {}


@pytest.mark.parametrize("code", [3, 13, 15, 16, 999])
def test_a_gpu_that_cannot_be_read_for_a_reason_that_others_judge_is_not_told_twice(code: int) -> None:
    assert Course(UNAVAILABLE).look(gpus(sample(ONE, failed=code), sample(TWO)), 3) == {}


def test_a_gpu_that_is_left_alone_is_not_judged_by_what_it_said_last() -> None:
    alone = gpus(sample(ONE, failed=17), sample(TWO), left_alone=(ONE,))
    assert Course(UNAVAILABLE).look(alone, 3) == {}


def test_one_missed_deadline_warns_and_two_ask_for_a_reboot() -> None:
    course = Course(UNRESPONSIVE)
    found = course.look(missed(1))["driver-unresponsive"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.NONE)
    found = course.look(missed(2))["driver-unresponsive"]
    assert (found.severity, found.action, found.gpu) == (Severity.CRITICAL, Action.REBOOT, None)
    assert found.evidence == f"{ONE}: no answer in 10 s; deadlines missed in a row: 2"


def test_it_takes_three_good_rounds_to_be_well_again() -> None:
    course = Course(UNRESPONSIVE)
    course.look(missed(2))
    assert course.look(WELL, 2) != {}
    assert course.look(missed(1)) != {}
    assert course.look(WELL, 2) != {}
    assert course.look(WELL) == {}


def test_a_silent_library_is_told_once_and_not_by_every_check() -> None:
    for check in (ecc.UNCORRECTED, recovery_action.CHECK):
        course = Course(check)
        assert course.look(refused(9), 5) == {}
        assert course.blind() == []


def test_what_was_raised_stays_while_nobody_can_look() -> None:
    course = Course(recovery_action.CHECK)
    course.look(gpus(sample(ONE, recovery_action=1)), 2)
    assert course.look(refused(9), 30) != {}
    assert course.look(WELL, 2) == {}
