"""The lab's BMCs: that they count resets truly and flip power as the real emulator says."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.repair.providers.machine import Machine, Refused, Sent
from reconciler.repair.providers.redfish import Redfish
from tests.lab.bmc import Bmc
from tests.lab.hook import Power, notified, read

ON = {"name": "gpu-01", "power_state": "On", "pending_power": None}


def restarting(apply_time: int, **other: str) -> dict[str, Any]:
    pending = {"power_state": "ForceRestart", "apply_time": apply_time}
    return {"name": "gpu-01", "power_state": "Off", "pending_power": pending, **other}


@pytest.fixture(scope="module")
def events() -> list[tuple[str, str]]:
    return []


@pytest.fixture(scope="module")
def bmc(tmp_path_factory: pytest.TempPathFactory, events: list[tuple[str, str]]) -> Iterator[Bmc]:
    def remember(node: str, state: str) -> None:
        events.append((node, state))

    with Bmc(tmp_path_factory.mktemp("bmc"), ("gpu-01", "gpu-02"), remember) as running:
        yield running


def wait_for(what: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "not seen in time"
        time.sleep(0.05)


def test_a_restart_counts_when_it_begins_and_not_when_it_ends() -> None:
    down = notified(Power(), restarting(100))
    assert (down.state, down.due, down.resets) == ("Off", 100.0, 1)
    up = notified(down, ON)
    assert (up.state, up.due, up.resets) == ("On", None, 1)


def test_a_second_restart_while_the_machine_is_down_counts_again() -> None:
    first = notified(Power(), restarting(100))
    assert notified(first, restarting(105)).resets == 2
    assert notified(first, restarting(100)).resets == 2


def test_another_change_while_a_restart_is_pending_is_no_reset() -> None:
    first = notified(Power(), restarting(100))
    assert notified(first, restarting(100, boot_device="Pxe")).resets == 1


def test_a_power_off_counts_when_it_applies() -> None:
    pending = {"power_state": "Off", "apply_time": 100}
    asked = notified(Power(), ON | {"pending_power": pending})
    assert (asked.state, asked.resets) == ("On", 0)
    assert notified(asked, {**ON, "power_state": "Off"}).resets == 1


def test_a_notice_that_came_too_late_is_mended_by_reading() -> None:
    late = notified(notified(Power(), ON), restarting(100))
    assert read(late, "On", now=99.0) == late
    assert (read(late, "On", now=100.1).state, read(late, "On", now=100.1).due) == ("On", None)


def test_a_machine_goes_down_at_once_and_comes_back_although_the_emulator_was_restarted(
    bmc: Bmc, events: list[tuple[str, str]]
) -> None:
    redfish, address = Redfish(bmc.username, bmc.password), bmc.system_url("gpu-01")
    assert redfish.reset(address, "ForceRestart") == Sent()
    wait_for(lambda: ("gpu-01", "Off") in events, 30)
    bmc.stop()
    assert isinstance(redfish.reset(address, "ForceRestart"), Refused)
    bmc.start()
    wait_for(lambda: events == [("gpu-01", "Off"), ("gpu-01", "On")], 60)
    assert bmc.system_url("gpu-01") == address
    machine = redfish.observe(address)
    assert isinstance(machine, Machine)
    assert machine.power == "On"
    assert (bmc.resets("gpu-01"), bmc.reset_posts("gpu-01")) == (1, 1)
    assert (bmc.resets("gpu-02"), bmc.reset_posts("gpu-02")) == (0, 0)
