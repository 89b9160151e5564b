"""The files of a node that an agent looks at: kernel log, boot id, hardware, what NVIDIA's driver shows."""

import shutil
import time
import uuid
from pathlib import Path

from tests.lab.hardware import furnish

GPU_BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")
"""PCI buses of the eight GPUs of an HGX H100 board, as such servers number them."""

BOOT_LINES = (
    (5, "Linux version 6.8.0-60-generic (buildd@example) (x86_64-linux-gnu-gcc-13) #63-Ubuntu SMP"),
    (6, "Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-60-generic root=/dev/md0p1 ro console=ttyS0"),
    (6, "mlx5_core 0000:18:00.0: firmware version: 28.43.2026"),
    (6, "nvidia-nvlink: Nvlink Core is being initialized, major device number 510"),
    (4, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.172.08  Tue Jul  8 18:31:43 UTC 2025"),
    (6, "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  570.172.08"),
    (6, "[drm] [nvidia-drm] [GPU ID 0x00001b00] Loading driver"),
)


def gpu_address(number: int) -> str:
    """Return the PCI address, in sysfs form, of a node's GPU `number` (from 0)."""
    return f"0000:{GPU_BUSES[number]}:00.0"


class NodeRoot:
    """The root directory of one node; `boot` makes it what a freshly booted kernel shows."""

    def __init__(self, path: Path, node: str) -> None:
        self.path = path
        self._node = node
        self._sequence = 0
        self._kmsg = path / "dev/kmsg"
        self._boot_id = path / "proc/sys/kernel/random/boot_id"
        for folder in (self._kmsg.parent, self._boot_id.parent):
            folder.mkdir(parents=True, exist_ok=True)

    def boot(self, boot_id: str, gpus: int) -> None:
        """Start a new boot: its id, an empty kernel log with the boot's own lines, the GPUs that answered."""
        self._boot_id.write_text(boot_id + "\n")
        fresh = self._kmsg.with_name("kmsg.new")
        fresh.write_bytes(b"")
        fresh.replace(self._kmsg)
        self._sequence = 0
        furnish(self.path, tuple(map(gpu_address, range(gpus))))
        self._show_gpus(gpus)
        for priority, text in BOOT_LINES:
            self.write_kernel(text, priority)

    def write_kernel(self, text: str, priority: int) -> None:
        """Append one record per line of `text`; time is CLOCK_MONOTONIC in microseconds, as in /dev/kmsg."""
        with self._kmsg.open("ab", buffering=0) as log:
            for line in text.splitlines():
                usec = time.monotonic_ns() // 1000
                log.write(f"{priority},{self._sequence},{usec},-;{line}\n".encode())
                self._sequence += 1

    def _show_gpus(self, count: int) -> None:
        shown = self.path / "proc/driver/nvidia/gpus"
        shutil.rmtree(shown, ignore_errors=True)
        shown.mkdir(parents=True)
        for address in map(gpu_address, range(count)):
            (shown / address).mkdir()
            fields = {
                "Model": "NVIDIA H100 80GB HBM3",
                "IRQ": "16",
                "GPU UUID": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{self._node}/{address}')}",
                "Video BIOS": "96.00.99.00.01",
                "Bus Type": "PCIe",
                "Bus Location": address,
            }
            text = "".join(f"{name}: \t {value}\n" for name, value in fields.items())
            (shown / address / "information").write_text(text)
