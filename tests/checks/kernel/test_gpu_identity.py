"""Who a GPU is: what the driver's lines tell, what is no key, and when two are one."""

import pytest

from checks.kernel.faults.kernel_faults import KernelFaults
from checks.kernel.faults.recurrence import GpuIdentities, GpuIdentity
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.line import KernelLine

ONE = "0000:5d:00.0"
UUID = "GPU-f1906b9b-557a-e961-045c-9fe4be3ce012"
AT = f"NVRM: GPU at PCI:0000:5d:00: {UUID}"
OLD = GpuIdentity(ONE, uuid="GPU-a", serial="1")


def told(*texts: str) -> GpuIdentity:
    """Return what the kernel log, read as the agent reads it, tells of the GPU."""
    faults, reader = KernelFaults(), KernelLogReader()
    for text in texts:
        for event in reader.events(KernelLine((text,)), 1):
            assert not event.event
            faults.take(event, 0.0, 0.0)
    return faults.board(ONE)


def test_the_drivers_lines_tell_uuid_and_serial() -> None:
    assert told(AT, "NVRM: GPU Board Serial Number: 1653923026510") == GpuIdentity(ONE, UUID, "1653923026510")
    assert told("NVRM: GPU 0000:5d:00.0: GPU serial number is PKWUQ0B9VFK0SG.") == GpuIdentity(
        ONE, serial="PKWUQ0B9VFK0SG"
    )


@pytest.mark.parametrize("serial", ["0", "0000000000000", "[N/A]", ""])
def test_a_board_without_a_serial_has_none(serial: str) -> None:
    assert told(AT, f"NVRM: GPU Board Serial Number: {serial}") == GpuIdentity(ONE, UUID)
    assert told(f"NVRM: GPU 0000:5d:00.0: GPU serial number is {serial}.") == GpuIdentity(ONE)


def test_a_serial_is_of_the_gpu_in_the_line_before_it_only() -> None:
    serial = "NVRM: GPU Board Serial Number: 1653923026510"
    assert told(serial, AT) == GpuIdentity(ONE, UUID)
    other = "NVRM: GPU at PCI:0000:1b:00: GPU-00000000-557a-e961-045c-9fe4be3ce012"
    assert told(AT, other, serial) == GpuIdentity(ONE, UUID)
    assert told(AT, serial, serial.replace("1653", "9999")).serial == "1653923026510"


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (GpuIdentity(ONE), True),
        (GpuIdentity("0000:1b:00.0"), False),
        (GpuIdentity("0000:1b:00.0", serial="1"), True),
        (GpuIdentity("0000:1b:00.0", uuid="GPU-a"), True),
        (GpuIdentity(ONE, uuid="GPU-b"), False),
        (GpuIdentity(ONE, serial="2"), False),
        (GpuIdentity(ONE, uuid="GPU-a", serial="2"), False),
        # One board with two GPUs.
        (GpuIdentity(ONE, uuid="GPU-b", serial="1"), False),
    ],
)
def test_two_are_one_by_what_is_known_of_both_else_by_address(other: GpuIdentity, is_same: bool) -> None:
    assert OLD.is_same(other) is is_same
    assert other.is_same(OLD) is is_same


def test_what_is_learnt_adds_up_and_another_gpu_begins_anew() -> None:
    boards = GpuIdentities()
    assert boards.learn(GpuIdentity(ONE)) is None
    assert boards.learn(GpuIdentity(ONE, uuid="GPU-a")) == (GpuIdentity(ONE), GpuIdentity(ONE, uuid="GPU-a"))
    assert boards.learn(GpuIdentity(ONE, serial="1")) == (GpuIdentity(ONE, uuid="GPU-a"), OLD)
    assert boards.learn(GpuIdentity(ONE, uuid="GPU-a", serial="0")) is None
    assert boards.learn(GpuIdentity(ONE, uuid="GPU-b")) == (OLD, GpuIdentity(ONE, uuid="GPU-b"))
    assert GpuIdentities(boards.known).of(ONE) == GpuIdentity(ONE, uuid="GPU-b")
