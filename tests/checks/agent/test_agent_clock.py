"""Wall clocks that jump by years: no finding ends, doubles or stays for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.agent.harness import XID, Bot
from tests.checks.agent.stepped import SteppedNode

YEAR = 365 * 86_400.0
HUNG = "INFO: task cp:4711 blocked for more than 120 seconds."


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[SteppedNode]:
    node = SteppedNode(tmp_path, bot)
    node.start()
    yield node
    node.stop()


@pytest.mark.parametrize("seconds", [YEAR, -YEAR, -60 * YEAR, 40.0, -40.0])
def test_a_clock_that_jumps_ends_nothing_and_counts_nothing_twice(seconds: float, node: SteppedNode) -> None:
    node.log(XID.format(code=79))
    node.log(HUNG)
    assert node.counts == {"79": 1, "hung-task": 1}
    node.runtime.began += seconds
    node.pass_time(1)
    assert node.counts == {"79": 1, "hung-task": 1}
    node.log(XID.format(code=79))
    assert node.counts == {"79": 2, "hung-task": 1}


@pytest.mark.parametrize("seconds", [YEAR, -YEAR])
def test_quiet_is_measured_from_boot_whatever_the_wall_clock_says(seconds: float, node: SteppedNode) -> None:
    node.log(HUNG)
    assert node.counts == {"hung-task": 1}
    node.runtime.began += seconds
    node.pass_time(1700)
    assert node.counts == {"hung-task": 1}
    node.pass_time(200)
    assert node.counts == {}


def test_the_driver_still_decides_about_an_xid_when_the_clock_was_set_in_between(node: SteppedNode) -> None:
    node.log(XID.format(code=119))
    assert node.counts == {"119": 1}
    node.runtime.began -= YEAR
    node.log(
        "NVRM: Xid (PCI:0000:3d:00): 154, GPU recovery action changed "
        "from 0x0 (None) to 0x2 (Node Reboot Required)"
    )
    assert {each["code"]: each["action"] for each in node.report()["findings"]}["119"] == "reboot"


def test_a_restart_after_a_jump_goes_on_with_what_was_known(node: SteppedNode) -> None:
    node.log(XID.format(code=79))
    assert node.counts == {"79": 1}
    node.stop()
    node.runtime.began -= YEAR
    node.start()
    assert node.counts == {"79": 1}
