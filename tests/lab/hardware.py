"""What a healthy 8-GPU server shows of itself in sysfs and procfs, besides its GPUs' driver.

Written once a boot; a test breaks a node by writing, or removing, single files.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

IB_PORTS = tuple(f"mlx5_{number}" for number in range(8))
"""One 400 Gb/s rail a GPU."""

NICS = ("eno1", "eno2")
NVME = tuple(f"nvme{number}" for number in range(8))
DIMMS = tuple((controller, dimm) for controller in ("mc0", "mc1") for dimm in ("dimm0", "dimm1"))
CPUS = 192
MEMORY_KIB = 2_113_421_312
"""What the kernel counts of 2 TiB."""

SERVICES: Mapping[int, str] = {1: "systemd", 1204: "containerd", 1377: "kubelet"}

MOUNTS = """\
22 1 9:0 / / rw,relatime shared:1 - ext4 /dev/md0p1 rw,errors=remount-ro
23 22 0:21 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
24 22 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw
31 22 259:3 / /var/lib/kubelet rw,relatime shared:29 - xfs /dev/nvme0n1 rw,attr2,inode64
32 22 259:4 / /var/lib/containerd rw,relatime shared:31 - xfs /dev/nvme1n1 rw,attr2,inode64
"""

H100 = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "subsystem_vendor": "0x10de",
        "subsystem_device": "0x16c1", "current_link_width": "16", "current_link_speed": "32.0 GT/s PCIe",
        "max_link_width": "16", "max_link_speed": "32.0 GT/s PCIe"}  # fmt: skip
"""An H100 SXM on the PCI bus."""

ROOT_PORT = {"vendor": "0x8086", "device": "0x352a", "class": "0x060400"}


def furnish(root: Path, gpus: tuple[str, ...]) -> None:
    """Lay out the files of a healthy server with GPUs at these addresses, as after a boot."""
    for name in ("sys", "proc/self", *(f"proc/{pid}" for pid in SERVICES)):
        shutil.rmtree(root / name, ignore_errors=True)
    for path, content in files(gpus).items():
        write(root, path, content)
    for path in ("var/lib/kubelet", "var/lib/containerd"):
        (root / path).mkdir(parents=True, exist_ok=True)
    for nic in NICS:
        (root / "sys/class/net" / nic / "device").mkdir()


def write(root: Path, path: str, content: str) -> None:
    """Write one file under the root."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)


def files(gpus: tuple[str, ...]) -> dict[str, str]:
    """Return every file of a healthy server by its path."""
    found = {
        "proc/1/mountinfo": MOUNTS,
        "proc/self/mountinfo": MOUNTS,
        "proc/meminfo": f"MemTotal:       {MEMORY_KIB} kB\nMemFree:        1931234567 kB\n",
        "proc/loadavg": "12.41 11.90 11.02 9/5120 91234\n",
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/threads-max": "16508200\n",
        "proc/sys/fs/file-nr": "24576\t0\t9223372036854775807\n",
        "sys/devices/system/cpu/online": f"0-{CPUS - 1}\n",
    }
    found |= {f"proc/{pid}/stat": stat(pid, name) for pid, name in SERVICES.items()}
    found |= {f"sys/bus/pci/devices/0000:00:01.0/{name}": f"{value}\n" for name, value in ROOT_PORT.items()}
    for gpu in gpus:
        found |= {f"sys/bus/pci/devices/{gpu}/{name}": f"{value}\n" for name, value in H100.items()}
        found[f"sys/bus/pci/devices/{gpu}/config"] = "\xde\x10\x30\x23"
    for port in IB_PORTS:
        found |= {f"sys/class/infiniband/{port}/ports/1/{name}": text for name, text in _IB_PORT.items()}
    for nic in NICS:
        found |= {f"sys/class/net/{nic}/{name}": f"{text}\n" for name, text in _NIC.items()}
    found |= {f"sys/class/net/lo/{name}": text for name, text in {"flags": "0x9\n", "type": "772\n"}.items()}
    for number, drive in enumerate(NVME):
        place = f"sys/class/nvme/{drive}"
        found |= {f"{place}/state": "live\n", f"{place}/transport": "pcie\n"}
        found[f"{place}/serial"] = f"EXAMPLE{number:04d}\n"
    for controller, dimm in DIMMS:
        place = f"sys/devices/system/edac/mc/{controller}/{dimm}"
        found |= {f"{place}/dimm_ce_count": "0\n", f"{place}/dimm_ue_count": "0\n"}
        found[f"{place}/dimm_label"] = f"CPU_SrcID#{controller[2]}_DIMM#{dimm[4]}\n"
    return found


def stat(pid: int, name: str, *, state: str = "S", parent: int = 1, started: int = 900) -> str:
    """Return a process's `stat`: pid, name, state, parent and, as field 22, its start."""
    zeros = " ".join("0" * 17)
    return f"{pid} ({name}) {state} {0 if pid == 1 else parent} {zeros} {started + pid} 0 0\n"


_IB_PORT = {
    "state": "4: ACTIVE\n",
    "phys_state": "5: LinkUp\n",
    "rate": "400 Gb/sec (4X NDR)\n",
    "link_layer": "InfiniBand\n",
    "counters/link_downed": "0\n",
    "counters/symbol_error": "0\n",
}

_NIC = {"flags": "0x1003", "type": "1", "carrier": "1", "operstate": "up"}
