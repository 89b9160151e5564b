"""Wall clocks that jump by years: no finding ends, doubles or stays for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.agent.test_agent import XID, Bot
from tests.checks.agent.test_agent_checks import Node

YEAR = 365 * 86_400.0
HUNG = "INFO: task cp:4711 blocked for more than 120 seconds."


class JumpingNode(Node):
    """A node whose wall clock can be set while the clock since boot goes on."""

    def say(self, text: str) -> None:
        with (self.root / "dev/kmsg").open("a") as log:
            log.write(f"4,{self.records},{int(self.uptime * 1e6)},-;{text}\n")
        self.records += 1

    def jump(self, seconds: float) -> None:
        self.began += seconds

    def counts(self) -> dict[str, int]:
        self.hear()
        return {each["code"]: each.get("count", 1) for each in self.bot.reports[-1]["findings"]}


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[JumpingNode]:
    node = JumpingNode(tmp_path, bot)
    node.start()
    yield node
    node.stop()


@pytest.mark.parametrize("seconds", [YEAR, -YEAR, -60 * YEAR, 40.0, -40.0])
def test_a_clock_that_jumps_ends_nothing_and_counts_nothing_twice(seconds: float, node: JumpingNode) -> None:
    node.say(XID.format(code=79))
    node.say(HUNG)
    assert node.counts() == {"79": 1, "hung-task": 1}
    node.jump(seconds)
    node.pass_time(1)
    assert node.counts() == {"79": 1, "hung-task": 1}
    node.say(XID.format(code=79))
    assert node.counts() == {"79": 2, "hung-task": 1}


@pytest.mark.parametrize("seconds", [YEAR, -YEAR])
def test_quiet_is_measured_from_boot_whatever_the_wall_clock_says(seconds: float, node: JumpingNode) -> None:
    node.say(HUNG)
    assert node.counts() == {"hung-task": 1}
    node.jump(seconds)
    node.pass_time(1700)
    assert node.counts() == {"hung-task": 1}
    node.pass_time(200)
    assert node.counts() == {}


def test_the_driver_still_decides_about_an_xid_when_the_clock_was_set_in_between(node: JumpingNode) -> None:
    node.say(XID.format(code=119))
    assert node.counts() == {"119": 1}
    node.jump(-YEAR)
    node.say(
        "NVRM: Xid (PCI:0000:3d:00): 154, GPU recovery action changed "
        "from 0x0 (None) to 0x2 (Node Reboot Required)"
    )
    node.hear()
    assert {each["code"]: each["action"] for each in node.bot.reports[-1]["findings"]}["119"] == "reboot"


def test_a_restart_after_a_jump_goes_on_with_what_was_known(node: JumpingNode) -> None:
    node.say(XID.format(code=79))
    assert node.counts() == {"79": 1}
    node.stop()
    node.jump(-YEAR)
    node.start()
    assert node.counts() == {"79": 1}
