"""The agent on a kernel log that is a device: its errors, its losses, and clocks that jump."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.agent.harness import XID, Bot, Node, wait_for
from tests.lab.kmsg.device import Device, Faults

EPERM, EIO, EINVAL, EPIPE, ENODEV = 1, 5, 22, 32, 19


class DeviceNode(Node):
    """A node whose kernel log is a device with faults."""

    def __init__(self, directory: Path, bot: Bot) -> None:
        super().__init__(directory, bot)
        self.device = Device(self.kmsg)
        self.faults = Faults(directory, self.kmsg)

    def start(self) -> None:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "checks"],
                env={**self.environment, **self.faults.environment},
                stdout=log,
                stderr=log,
            )

    def log_xid(self, code: int) -> None:
        self.device.write([XID.format(code=code)])

    def close(self) -> None:
        if self.process is not None:
            self.end(signal.SIGKILL)
        self.device.close()


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[DeviceNode]:
    node = DeviceNode(tmp_path, bot)
    yield node
    node.close()


def test_a_device_is_read_record_by_record_and_nothing_is_lost(bot: Bot, node: DeviceNode) -> None:
    node.start()
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"79": 1})
    node.device.write([XID.format(code=31)] * 3000 + [XID.format(code=79)])
    wait_for(lambda: bot.counts() == {"79": 2, "31": 3000})
    assert bot.blind_spots() == {}


def test_overwritten_records_are_told_with_their_number_and_the_rest_is_read(
    bot: Bot, node: DeviceNode
) -> None:
    node.start()
    node.log_xid(48)
    wait_for(lambda: bot.counts() == {"48": 1})
    node.faults.once("read", EPIPE)
    node.device.lose(17)
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"48": 1, "79": 1})
    assert bot.blind_spots() == {"log-lost": 17}


@pytest.mark.parametrize("errors", [[EINVAL], [EPIPE] * 40, [EIO, EPIPE, EIO]])
def test_errors_that_pass_cost_nothing_that_was_logged(errors: list[int], bot: Bot, node: DeviceNode) -> None:
    node.start()
    node.log_xid(48)
    wait_for(lambda: bot.counts() == {"48": 1})
    node.faults.once("read", *errors)
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"48": 1, "79": 1})
    wait_for(lambda: bot.blind_spots() == {})


@pytest.mark.parametrize("error", [EIO, ENODEV])
def test_a_device_that_goes_on_failing_is_a_blind_spot_until_it_works(
    error: int, bot: Bot, node: DeviceNode
) -> None:
    node.start()
    node.log_xid(48)
    wait_for(lambda: bot.counts() == {"48": 1})
    node.faults.always("read", error)
    node.log_xid(79)
    wait_for(lambda: bot.blind_spots() == {"log-blind": 1})
    assert bot.counts() == {"48": 1}
    node.faults.mend()
    wait_for(lambda: bot.counts() == {"48": 1, "79": 1})
    wait_for(lambda: bot.blind_spots() == {})
    assert node.log().count("kernel log cannot be read") == 1


def test_a_log_that_may_not_be_opened_says_which_right_is_missing(bot: Bot, node: DeviceNode) -> None:
    node.faults.always("open", EPERM)
    node.start()
    wait_for(lambda: bot.blind_spots() == {"log-blind": 1})
    assert "CAP_SYSLOG" in bot.reports[-1]["blind_spots"][0]["evidence"]
    node.faults.mend()
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"79": 1} and bot.blind_spots() == {})


def test_a_boot_id_that_cannot_be_read_for_a_while_is_not_another_boot(bot: Bot, node: DeviceNode) -> None:
    node.start()
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"79": 1})
    boot_id = node.root / "proc/sys/kernel/random/boot_id"
    boot_id.rename(boot_id.with_name("hidden"))
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"79": 2})
    boot_id.with_name("hidden").rename(boot_id)
    node.log_xid(79)
    wait_for(lambda: bot.counts() == {"79": 3})
    assert len({report["boot_id"] for report in bot.reports}) == 1


def test_a_device_that_is_taken_away_is_a_blind_spot(bot: Bot, node: DeviceNode) -> None:
    node.start()
    node.log_xid(48)
    wait_for(lambda: bot.counts() == {"48": 1})
    node.device.close()
    node.device = Device(node.kmsg.with_name("other"))
    wait_for(lambda: bot.blind_spots() == {"log-blind": 1})
    assert bot.counts() == {"48": 1}
