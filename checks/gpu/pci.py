"""GPUs as the kernel shows them without NVML: the PCI bus in sysfs, and the driver's files in procfs.

Files that vanish or refuse between listing and reading cost only what they would have told.
"""

from pathlib import Path

from checks.gpu.sample import PciGpu
from checks.kernel.event import pci_address

DEVICES = "sys/bus/pci/devices"
"""One directory a PCI function, under the root."""

DRIVER_GPUS = "proc/driver/nvidia/gpus"
"""One directory a GPU that the driver has, under the root; absent while the driver is not loaded."""

NVIDIA = "0x10de"
GONE = b"\xff\xff"
"""What is read of the configuration space of a function that has left the bus."""

FILE_LIMIT = 4096
"""Bytes of a file of sysfs: a page."""

_GPU_CLASSES = ("0x0300", "0x0302")
_SWITCH_CLASS = "0x0680"
_GPU, _SWITCH, _OTHER = "gpu", "switch", "other"


class Bus:
    """The PCI bus. What a function is does not change while it is there, so it is asked once."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._boards: dict[str, str] = {}

    def read(self, root: Path) -> tuple[tuple[PciGpu, ...] | None, int]:
        """Return the GPUs by address, and how many NVSwitches there are; None and 0 where one cannot look."""
        try:
            names = sorted(each.name for each in (root / DEVICES).iterdir())
        except OSError:
            return None, 0
        self._kinds = {name: self._kinds.get(name) or _kind(root / DEVICES / name) for name in names}
        self._boards = {
            name: self._boards.get(name) or _board(root / DEVICES / name)
            for name in names
            if self._kinds[name] == _GPU
        }
        gpus = [_gpu(root / DEVICES / name, board) for name, board in self._boards.items()]
        return tuple(filter(None, gpus)), list(self._kinds.values()).count(_SWITCH)


def driver_gpus(root: Path) -> tuple[str, ...] | None:
    """Return the addresses of the GPUs that the driver has, None where it is not loaded."""
    try:
        names = sorted(each.name for each in (root / DRIVER_GPUS).iterdir())
    except OSError:
        return None
    return tuple(address for name in names if (address := pci_address(name)) is not None)


def _kind(place: Path) -> str:
    if text(place / "vendor") != NVIDIA:
        return _OTHER
    family = (text(place / "class") or "")[:6]
    return _GPU if family in _GPU_CLASSES else _SWITCH if family == _SWITCH_CLASS else _OTHER


def _board(place: Path) -> str:
    return ":".join((text(place / each) or "").removeprefix("0x") for each in _BOARD)


def _gpu(place: Path, board: str) -> PciGpu | None:
    device = text(place / "device")
    if device is None:
        return None
    try:
        driver = (place / "driver").readlink().name
    except OSError:
        driver = None
    alive = _head(place / "config") != GONE
    return PciGpu(
        gpu=place.name,
        device=f"10de:{device.removeprefix('0x')}",
        board=board,
        driver=driver,
        alive=alive,
        width=_whole(text(place / "current_link_width")) if alive else None,
        speed=_speed(text(place / "current_link_speed")) if alive else None,
    )


_BOARD = ("subsystem_vendor", "subsystem_device")


def _speed(shown: str | None) -> float | None:
    """Return the GT/s of `32.0 GT/s PCIe`."""
    try:
        return float((shown or "").split(" ")[0])
    except ValueError:
        return None


def _whole(shown: str | None) -> int | None:
    return int(shown) if shown and shown.isdecimal() else None


def _head(file: Path) -> bytes:
    try:
        with file.open("rb", buffering=0) as opened:
            return opened.read(2) or b""
    except OSError:
        return b""


def text(file: Path) -> str | None:
    """Return the content of a small file without surrounding blanks, None when it cannot be read."""
    try:
        # Unbuffered: half the system calls of a text file, and there are dozens of these a minute.
        with file.open("rb", buffering=0) as opened:
            return (opened.read(FILE_LIMIT) or b"").decode("ascii", "replace").strip()
    except OSError:
        return None
