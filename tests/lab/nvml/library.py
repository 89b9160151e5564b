"""The stand-in NVML library and the machine that it tells of.

`build` compiles nvml.c; a process started with `environment(...)` loads it in place of the driver's library.
`Machine` is the state behind it: change it, `write` it, and the next call sees it.
"""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")

HEALTHY_FIELDS = {
    3: 0,
    4: 0,
    38: 0,
    45: 0,
    52: 0,
    59: 0,
    94: 0,
    142: 0,
    143: 0,
    144: 0,
    145: 0,
    194: -2,
    230: 0,
    269: 0,
    270: 0,
    271: 0,
}
"""NVML fields of an H100 that nothing is wrong with."""

HEALTHY_CALLS = {
    "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetGpuFabricInfoV": 3 + (1 << 12),
    "nvmlDeviceGetMarginTemperature": 45,
    "nvmlDeviceGetMemoryInfo_v2": 1 << 20,
    "nvmlDeviceGetMigMode": 0,
    "nvmlDeviceGetNvLinkState": (1 << 18) - 1,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetSramEccErrorStatus": 0,
}
"""What calls about such a GPU without a job answer; links and fabric are packed as nvml.c says."""


def build(directory: Path, hidden: Iterable[str] = ()) -> Path:
    """Compile the library into `directory`, without the symbols `hidden`, and return the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    script = directory / "symbols.map"
    local = "".join(f"    {name};\n" for name in (*hidden, "*"))
    script.write_text(f"{{\n  global:\n    nvml*;\n  local:\n{local}}};\n")
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    command += [f"-Wl,--version-script={script}", "-o", str(directory / "libnvidia-ml.so.1"), str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return directory


@dataclass
class Machine:
    """The GPUs of one machine, by PCI address in sysfs form, in the order of NVML's indexes."""

    file: Path
    driver: str = "570.172.08"
    gpus: list[str] = field(default_factory=list)
    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    fields: dict[tuple[str, str], int] = field(default_factory=dict)
    refused: dict[tuple[str, str], int] = field(default_factory=dict)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    hangs: set[tuple[str, str]] = field(default_factory=set)
    slow: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, *addresses: str) -> "Machine":
        """Put healthy H100s in."""
        for address in addresses:
            self.gpus.append(address)
            self.calls |= {(address, call): value for call, value in HEALTHY_CALLS.items()}
            self.fields |= {(address, str(number)): value for number, value in HEALTHY_FIELDS.items()}
        return self

    def lose(self, address: str) -> None:
        """Make every call about the GPU answer that it is lost."""
        self.errors[address, "*"] = 15

    def drop(self, address: str) -> None:
        """Take the GPU out of NVML's list, so that the indexes of those behind it shift."""
        self.gpus.remove(address)

    def write(self) -> "Machine":
        """Let the library see the state, in one step."""
        lines = [f"text - nvmlSystemGetDriverVersion {self.driver}", "text - nvmlSystemGetNVMLVersion 13.570"]
        for address in self.gpus:
            number = address[5:7]
            lines.append(f"gpu {address} GPU-{number}-example 16500{number} NVIDIA H100 80GB HBM3")
        lines += [f"value {gpu} {call} {value}" for (gpu, call), value in self.calls.items()]
        lines += [f"field {gpu} {number} {value}" for (gpu, number), value in self.fields.items()]
        lines += [f"nofield {gpu} {number} {code}" for (gpu, number), code in self.refused.items()]
        lines += [f"error {gpu} {call} {code}" for (gpu, call), code in self.errors.items()]
        lines += [f"hang {gpu} {call}" for gpu, call in self.hangs]
        lines += [f"slow {gpu} {call} {milliseconds}" for (gpu, call), milliseconds in self.slow.items()]
        new = self.file.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.file)
        return self

    def environment(self, library: Path) -> dict[str, str]:
        """Return the environment of a process that loads the library in `library`."""
        return {**os.environ, "LD_LIBRARY_PATH": str(library), "NVML_STATE": str(self.file)}
