"""The inventory that every report carries: the GPUs that the driver shows in /proc, without NVML."""

import os
from pathlib import Path

from checks.kernel.parse.event import pci_address
from checks.report import Gpu, Inventory

INFORMATION = "proc/driver/nvidia/gpus"
"""Directory under the root with one directory for each GPU, each with a file `information`."""


class InventoryCache:
    """The inventory under `root`, which hardly ever changes.

    Its files are read again in another boot, when the driver has other GPUs, and until all facts are known.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: tuple[str, list[str], Inventory] | None = None

    def read(self, boot_id: str) -> Inventory:
        """Return what is there now, in the boot `boot_id`."""
        try:
            names = os.listdir(self._root / INFORMATION)  # noqa: PTH208 - names are what is wanted
        except OSError:
            return Inventory(gpus=None)
        known = self._known
        if known is not None and known[:2] == (boot_id, names):
            return known[2]
        inventory = read_inventory(self._root)
        whole = all(gpu.uuid and gpu.model for gpu in inventory.gpus or ())
        self._known = (boot_id, names, inventory) if whole else None
        return inventory


def read_inventory(root: Path) -> Inventory:
    """Return the GPUs under `root` in the order of their addresses, None where /proc cannot be read.

    A file that vanishes between listing and reading costs only its own facts.
    """
    try:
        directories = sorted((root / INFORMATION).iterdir())
    except OSError:
        return Inventory(gpus=None)
    return Inventory(gpus=tuple(gpu for each in directories if (gpu := _read(each)) is not None))


def _read(directory: Path) -> Gpu | None:
    facts = _facts(directory / "information")
    address = pci_address(facts.get("Bus Location", directory.name)) or pci_address(directory.name)
    if address is None:
        return None
    return Gpu(address=address, uuid=_known(facts.get("GPU UUID")), model=_known(facts.get("Model")))


def _facts(file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _known(text: str | None) -> str | None:
    """Return a fact, None where the driver prints question marks because it does not know it (yet)."""
    return text if text and "??" not in text else None
