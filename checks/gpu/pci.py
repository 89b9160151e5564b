"""GPUs as the kernel shows them without NVML: the PCI bus in sysfs, and the driver's files in procfs.

A file that vanishes or cannot be read costs only its own facts. Paths are strings here: joining `Path`s would
cost more than reading dozens of small files a minute.
"""

import os
from pathlib import Path

from checks.gpu_sample import PciGpu
from checks.kernel.parse.event import pci_address

DEVICES = "sys/bus/pci/devices"
"""One directory for each PCI function, under the root."""

DRIVER_GPUS = "proc/driver/nvidia/gpus"
"""One directory for each GPU of the driver, under the root; absent while the driver is not loaded."""

NVIDIA = "0x10de"
GONE = b"\xff\xff"
"""What the configuration space of a function reads that has left the bus."""

FILE_LIMIT = 4096
"""Size of a sysfs file in bytes: a page."""

_GPU_CLASSES = ("0x0300", "0x0302")
_SWITCH_CLASS = "0x0680"
_GPU, _SWITCH, _OTHER = "gpu", "switch", "other"


class PciBus:
    """The PCI bus. A function does not change its kind while it is there, so its kind is read once."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._boards: dict[str, str] = {}

    def read(self, root: Path) -> tuple[tuple[PciGpu, ...] | None, int]:
        """Return the GPUs by address and the number of NVSwitches; None and 0 where sysfs cannot be read."""
        bus = f"{root}/{DEVICES}"
        try:
            names = sorted(os.listdir(bus))  # noqa: PTH208 - names are what is wanted
        except OSError:
            return None, 0
        self._kinds = {name: self._kinds.get(name) or _kind(f"{bus}/{name}") for name in names}
        self._boards = {
            name: self._boards.get(name) or _board(f"{bus}/{name}")
            for name in names
            if self._kinds[name] == _GPU
        }
        gpus = [_gpu(bus, name, board) for name, board in self._boards.items()]
        return tuple(filter(None, gpus)), list(self._kinds.values()).count(_SWITCH)


def driver_gpus(root: Path) -> tuple[str, ...] | None:
    """Return the addresses of the GPUs that the driver has, None where it is not loaded."""
    try:
        names = sorted(os.listdir(root / DRIVER_GPUS))  # noqa: PTH208 - names are what is wanted
    except OSError:
        return None
    return tuple(address for name in names if (address := pci_address(name)) is not None)


def _kind(place: str) -> str:
    if text(f"{place}/vendor") != NVIDIA:
        return _OTHER
    family = (text(f"{place}/class") or "")[:6]
    return _GPU if family in _GPU_CLASSES else _SWITCH if family == _SWITCH_CLASS else _OTHER


def _board(place: str) -> str:
    return ":".join((text(f"{place}/{each}") or "").removeprefix("0x") for each in _BOARD)


def _gpu(bus: str, name: str, board: str) -> PciGpu | None:
    place = f"{bus}/{name}"
    device = text(f"{place}/device")
    if device is None:
        return None
    try:
        driver = os.readlink(f"{place}/driver").rpartition("/")[2]  # noqa: PTH115 - see the top
    except OSError:
        driver = None
    alive = _head(f"{place}/config") != GONE
    return PciGpu(
        gpu=name,
        device=f"10de:{device.removeprefix('0x')}",
        board=board,
        driver=driver,
        alive=alive,
        width=_whole(text(f"{place}/current_link_width")) if alive else None,
        speed=_speed(text(f"{place}/current_link_speed")) if alive else None,
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


def _head(file: str) -> bytes:
    return _read(file, 2) or b""


def text(file: Path | str) -> str | None:
    """Return the content of a small file without surrounding blanks, None when it cannot be read."""
    content = _read(file, FILE_LIMIT)
    return None if content is None else content.decode("ascii", "replace").strip()


def _read(file: Path | str, limit: int) -> bytes | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)
