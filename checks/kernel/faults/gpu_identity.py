"""Which GPU it is: the board's serial number and the chip's UUID, which go where it goes (section 4, K18).

The kernel log tells both before a GPU's first Xid, /proc tells the UUID, NVML both.
"""

import re
from collections.abc import Iterable

import msgspec

from checks.kernel.event import ADDRESS, pci_address


class Board(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of the GPU at a PCI address."""

    address: str
    uuid: str | None = None
    serial: str | None = None

    def is_same(self, other: "Board") -> bool:
        """Whether both are one GPU: nothing tells them apart, and something says that they are one.

        A UUID has its say beside the serial: one board can hold several GPUs. Where neither is known of both,
        the address decides.
        """
        if self == other:
            return True
        names = ((self.serial, other.serial), (self.uuid, other.uuid))
        known = [one == two for one, two in names if one and two]
        return all(known) if known else self.address == other.address


class Boards:
    """The GPUs of one node in one boot, by address."""

    def __init__(self, known: Iterable[Board] = ()) -> None:
        self._boards = {each.address: each for each in known}
        self._named = ""

    @property
    def known(self) -> tuple[Board, ...]:
        """What is known, to be saved."""
        return tuple(self._boards.values())

    def of(self, gpu: str) -> Board:
        """Return what is known of the GPU at an address."""
        return self._boards.get(gpu) or Board(gpu)

    def learn(self, told: Board) -> tuple[Board, Board] | None:
        """Take in what somebody tells; return what was known before and what is now, None for no news.

        What contradicts what was known tells of another GPU at this address.
        """
        before, after = self.of(told.address), Board(told.address, told.uuid, serial_number(told.serial))
        if before.is_same(after):
            after = Board(told.address, after.uuid or before.uuid, after.serial or before.serial)
        if after == before:
            return None
        self._boards[told.address] = after
        return before, after

    def read(self, text: str) -> Board | None:
        """Return what an identity line of the driver tells, None for any other line."""
        if found := _AT.match(text):
            self._named = pci_address(found[1]) or ""
            return Board(self._named, uuid=found[2]) if self._named else None
        if found := _SERIAL.match(text):
            # The first wording has no address: it follows the line that has.
            address, self._named = pci_address(found[1] or "") or self._named, ""
            return Board(address, serial=found[2]) if address else None
        return None


def serial_number(text: str | None) -> str | None:
    """Return a serial number, None for what boards without one show: zeros, nothing, `[N/A]`."""
    return text if text and text.isalnum() and text.strip("0") else None


_AT = re.compile(rf"NVRM: GPU at (?:PCI:)?({ADDRESS}): (GPU-[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4,12}}){{4}})\b")
_SERIAL = re.compile(rf"NVRM: GPU (?:Board Serial Number:|({ADDRESS}): GPU serial number is) *(\w{{1,32}})")
