"""The part of sysfs and procfs that tells of GPUs, laid out under a root."""

import shutil
from pathlib import Path

FILES = {
    "vendor": "0x10de",
    "class": "0x030200",
    "device": "0x2330",
    "subsystem_vendor": "0x10de",
    "subsystem_device": "0x16c1",
    "current_link_width": "16",
    "current_link_speed": "32.0 GT/s PCIe",
}
"""What sysfs shows of an H100 SXM5."""


def plug(root: Path, address: str, driver: str | None = "nvidia", **files: str) -> Path:
    """Put a GPU on the bus, with some files of its own, bound to a driver; return its directory."""
    place = root / "sys/bus/pci/devices" / address
    place.mkdir(parents=True)
    for name, text in {**FILES, **files}.items():
        (place / name).write_text(text + "\n")
    (place / "config").write_bytes(b"\xde\x10" + bytes(62))
    if driver is not None:
        bound = root / "sys/bus/pci/drivers" / driver
        bound.mkdir(parents=True, exist_ok=True)
        (place / "driver").symlink_to(bound)
    if driver == "nvidia":
        (root / "proc/driver/nvidia/gpus" / address).mkdir(parents=True)
    return place


def use(root: Path, handles: int = 1, module: str = "nvidia_uvm") -> None:
    """Let so many handles be open on the devices of a kernel module; 0 when no program is there any more."""
    place = root / "sys/module" / module
    place.mkdir(parents=True, exist_ok=True)
    (place / "refcnt").write_text(f"{handles}\n")


def unplug(root: Path, address: str) -> None:
    """Take a GPU off the bus, as a rescan does."""
    shutil.rmtree(root / "sys/bus/pci/devices" / address)


def fall_off(root: Path, address: str) -> None:
    """Let a GPU fall off the bus: it is still listed, and its configuration space reads ones."""
    (root / "sys/bus/pci/devices" / address / "config").write_bytes(b"\xff" * 64)


def unload(root: Path) -> None:
    """Unload the driver."""
    shutil.rmtree(root / "proc/driver/nvidia")
