"""The real sushy-emulator, and what its power notifications mean."""

from typing import Any

from tests.lab.sushy_hook import Power, notified, read

ON = {"name": "gpu-01", "power_state": "On", "pending_power": None}


def restarting(apply_time: int, **other: str) -> dict[str, Any]:
    pending = {"power_state": "ForceRestart", "apply_time": apply_time}
    return {"name": "gpu-01", "power_state": "Off", "pending_power": pending, **other}


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
