"""recovery-action, and what is read of the board every ten minutes."""

import pytest

from checks.check import Check
from checks.finding import Action, Severity
from checks.gpu import board, recovery_action
from checks.gpu_sample import BoardSample, GpuSnapshot
from checks.policy import Expected, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, gpus, sample


def wanting(action: int | None) -> GpuSnapshot:
    return gpus(sample(ONE, recovery_action=action), sample(TWO))


@pytest.mark.parametrize(
    ("value", "severity", "action"),
    [
        (1, Severity.CRITICAL, Action.RESET_GPU),
        (2, Severity.CRITICAL, Action.REBOOT),
        (3, Severity.WARNING, Action.ASK),
        (4, Severity.CRITICAL, Action.RESET_GPU),
        (5, Severity.UNKNOWN, Action.ASK),
        (77, Severity.UNKNOWN, Action.ASK),
    ],
)
def test_the_driver_gets_what_it_asks_for_after_two_looks(
    value: int, severity: Severity, action: Action
) -> None:
    harness = GpuHarness(recovery_action.CHECK)
    assert harness.look(wanting(value)) == {}
    found = harness.look(wanting(value))[f"recovery-action/{ONE}"]
    assert (found.severity, found.action) == (severity, action)
    assert harness.look(wanting(0)) != {}
    assert harness.look(wanting(0)) == {}


def test_a_driver_that_asks_for_nothing_or_cannot_say_is_well() -> None:
    assert GpuHarness(recovery_action.CHECK).look(wanting(0), 5) == {}
    assert GpuHarness(recovery_action.CHECK).look(wanting(None), 5) == {}


def test_from_drain_to_reset_is_one_finding() -> None:
    harness = GpuHarness(recovery_action.CHECK)
    harness.look(wanting(3), 2)
    found = harness.look(wanting(1))
    assert [(each.code, each.action) for each in found.values()] == [("recovery-action", Action.RESET_GPU)]


@pytest.mark.parametrize("known", [{"failed": 16}, {"denied": (("field 94", 16),)}])
def test_a_gpu_that_refuses_calls_until_it_is_reset_is_to_be_reset(known: dict[str, object]) -> None:
    found = GpuHarness(recovery_action.CHECK).look(gpus(sample(ONE, **known), sample(TWO)), 2)
    assert found[f"recovery-action/{ONE}"].action is Action.RESET_GPU


def with_board(**known: object) -> GpuSnapshot:
    whole = {"inforom": 0, "power": 0, "persistence": True, **known}
    return gpus(sample(ONE, board=BoardSample(**whole)), sample(TWO))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("check", "known"),
    [
        (board.POWER, {"power": 999}),
        (board.INFOROM, {"inforom": 14}),
        (board.PERSISTENCE, {"persistence": False}),
    ],
)
def test_the_board_is_judged_by_three_looks(check: Check, known: dict[str, object]) -> None:
    harness = GpuHarness(check)
    assert harness.look(with_board(**known), 2) == {}
    found = harness.look(with_board(**known))[f"{check.name}/{ONE}"]
    assert (found.severity, found.action) == (Severity.WARNING, Action.ASK)
    assert harness.look(with_board(), 2) == {}
    assert harness.uptime == 3600.0 + 5 * 600


@pytest.mark.parametrize("check", [board.POWER, board.INFOROM, board.PERSISTENCE])
def test_a_board_that_does_not_tell_is_not_judged(check: Check) -> None:
    assert GpuHarness(check).look(gpus(sample(ONE, board=BoardSample())), 5) == {}
    assert GpuHarness(check).look(gpus(sample(ONE, board=None)), 5) == {}


def test_a_board_that_cannot_be_asked_is_not_judged_by_what_was_known() -> None:
    gone = gpus(sample(ONE, failed=15, board=BoardSample(power=999)), sample(TWO))
    assert GpuHarness(board.POWER).look(gone, 5) == {}


def test_persistence_is_wanted_where_the_policy_or_the_siblings_say_so() -> None:
    off = gpus(
        sample(ONE, board=BoardSample(persistence=False)), sample(TWO, board=BoardSample(persistence=False))
    )
    assert GpuHarness(board.PERSISTENCE).look(off, 5) == {}
    assert len(GpuHarness(board.PERSISTENCE, Policy(expected=Expected(persistence=True))).look(off, 3)) == 2
    unwanted = Policy(expected=Expected(persistence=False))
    assert GpuHarness(board.PERSISTENCE, unwanted).look(with_board(persistence=False), 5) == {}
