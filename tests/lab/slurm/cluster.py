"""A real Slurm on this machine: munged, slurmctld and a slurmd a node, on loopback, without accounting.

Needs root; `problem()` says what is missing. Nodes have GPUs that are character devices with no driver behind
them. Where the kernel has no cgroups of version 1, jobs are tracked by process and see every device.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.lab import watchdog
from tests.lab.ports import free_ports

TEMPLATES = Path(__file__).parent
FREEZER = Path("/sys/fs/cgroup/freezer")
PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "scontrol", "sinfo")
GPU_MAJOR = 195
"""Major number of NVIDIA's devices; nothing answers there on a machine without its driver."""

START_SECONDS = 60.0

WITHOUT_CGROUPS = {
    "ProctrackType=proctrack/cgroup": "ProctrackType=proctrack/linuxproc",
    "TaskPlugin=task/cgroup": "TaskPlugin=task/none",
    "PrologFlags=Alloc,Contain": "PrologFlags=Alloc",
}


def problem() -> str:
    """Return why Slurm cannot run here, empty when it can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} missing: apt-get install slurmctld slurmd slurm-client munge"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root here"


class Slurm:
    """A cluster of `nodes` nodes named `PREFIX0`, `PREFIX1`, ..., with `gpus` GPUs each."""

    def __init__(self, nodes: int = 2, gpus: int = 2, *, cgroups: bool | None = None) -> None:
        # Short, because unix sockets allow 107 bytes; unique, because Slurm's cgroup folders are global.
        self.root = Path(tempfile.mkdtemp(prefix="sl", dir="/tmp"))
        self.prefix = self.root.name.replace("_", "x").lower()
        self.names = tuple(f"{self.prefix}{number}" for number in range(nodes))
        self._gpus = gpus
        self._cgroups = FREEZER.is_dir() if cgroups is None else cgroups
        ports = free_ports(nodes + 1)
        self._render(ports[0], ports[1])
        self.environment = {**os.environ, "SLURM_CONF": str(self.root / "etc/slurm.conf")}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and wait until every node is idle."""
        watchdog.keep_daemons(self.root)
        key = self.root / "etc/munge.key"
        self._run("mungekey", f"--keyfile={key}", "--create", "--bits=1024")
        self._run(
            "munged", "--force", "--num-threads=2", f"--socket={self.root}/run/munge.socket",
            f"--key-file={key}", f"--pid-file={self.root}/run/munged.pid",
            f"--log-file={self.root}/log/munged.log", f"--seed-file={self.root}/run/munged.seed",
        )  # fmt: skip
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        self.wait("every node idle", lambda: set(self._states()) == {"idle"} and self._registered())

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self._run("slurmctld")
        self.wait("slurmctld", lambda: self._asks("scontrol", "ping").returncode == 0)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        self._run("slurmd", "-N", name)

    def stop_node(self, name: str) -> None:
        """End the slurmd of a node at once."""
        self._end(f"slurmd.{name}", signal.SIGKILL)

    def stop_controller(self) -> None:
        """End slurmctld as its service does."""
        self._end("slurmctld", signal.SIGTERM)

    def stop(self) -> None:
        """End everything and remove what it left."""
        for name in self.names:
            self._end(f"slurmd.{name}", signal.SIGTERM, wait=False)
        self._end("slurmctld", signal.SIGTERM)
        for name in self.names:
            self._end(f"slurmd.{name}", signal.SIGKILL)
        self._end("munged", signal.SIGTERM)
        for folder in Path("/sys/fs/cgroup").glob(f"*/slurm_{self.prefix}*"):
            for each in sorted(folder.rglob("*"), reverse=True):
                if each.is_dir():
                    with contextlib.suppress(OSError):
                        each.rmdir()
            with contextlib.suppress(OSError):
                folder.rmdir()
        watchdog.drop_daemons(self.root)
        shutil.rmtree(self.root, ignore_errors=True)

    def scontrol(self, *arguments: str) -> str:
        """Run scontrol and return what it prints; raises CalledProcessError when it refuses."""
        done = self._asks("scontrol", *arguments)
        done.check_returncode()
        return done.stdout

    def wait(self, what: str, found: Callable[[], object]) -> None:
        """Return once `found` is true."""
        until = time.monotonic() + START_SECONDS
        while not found():
            if time.monotonic() > until:
                raise TimeoutError(f"{what} did not come:\n{self.log()}")
            time.sleep(0.05)

    def log(self) -> str:
        """Return the end of the daemons' logs."""
        return "\n".join(file.read_text()[-1500:] for file in sorted((self.root / "log").glob("*.log")))

    def _states(self) -> list[str]:
        return self._asks("sinfo", "-h", "-N", "-o", "%t").stdout.split()

    def _registered(self) -> bool:
        return "BootTime=None" not in self._asks("scontrol", "-o", "show", "nodes").stdout

    def _asks(self, *argv: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                argv, env=self.environment, capture_output=True, text=True, timeout=5, check=False
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(argv, 124, "", "no answer in 5 s")

    def _run(self, *argv: str) -> None:
        subprocess.run(
            argv, env=self.environment, check=True, timeout=30, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _end(self, name: str, how: signal.Signals, *, wait: bool = True) -> None:
        file = self.root / f"run/{name}.pid"
        try:
            pid = int(file.read_text())
            os.kill(pid, how)
        except (OSError, ValueError):
            return
        until = time.monotonic() + 15
        while wait and time.monotonic() < until and Path(f"/proc/{pid}/stat").exists():
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.05)

    def _render(self, controller_port: int, first_port: int) -> None:
        for folder in ("etc", "run", "log", "db", "state", "scripts"):
            (self.root / folder).mkdir()
        for name in self.names:
            (self.root / "spool" / name).mkdir(parents=True)
            devices = self.root / "dev" / name
            devices.mkdir(parents=True)
            for gpu in range(self._gpus):
                minor = self.names.index(name) * 16 + gpu
                os.mknod(devices / f"nvidia{gpu}", 0o600 | 0o020000, os.makedev(GPU_MAJOR, minor))
        for script in ("prolog", "epilog", "health"):
            file = self.root / f"scripts/{script}.sh"
            file.write_text("#!/bin/sh\nexit 0\n")
            file.chmod(0o755)
        values = {
            "root": self.root, "host": socket.gethostname(), "cluster": "c1", "prefix": self.prefix,
            "last_node": len(self.names) - 1, "ctld_port": controller_port, "dbd_port": 1,
            "slurmd_port": first_port, "slurmd_last_port": first_port + len(self.names) - 1, "cpus": 1,
            "memory_mb": 500, "gpu_type": "h100", "gpus": self._gpus, "last_gpu": self._gpus - 1,
            "slurmd_timeout": 10, "hook_timeout": 30, "max_nodes": len(self.names) + 32,
        }  # fmt: skip
        conf = (TEMPLATES / "slurm.conf").read_text().format_map(values)
        if not self._cgroups:
            for with_cgroups, without in WITHOUT_CGROUPS.items():
                conf = conf.replace(with_cgroups, without)
        kept = [line for line in conf.splitlines() if not line.startswith("AccountingStorage")]
        (self.root / "etc/slurm.conf").write_text("\n".join(kept) + "\n")
        (self.root / "etc/cgroup.conf").write_text((TEMPLATES / "cgroup.conf").read_text())
        gres = (TEMPLATES / "gres.conf").read_text().splitlines()
        rows = [gres[-1].format_map({**values, "node": name}) for name in self.names]
        (self.root / "etc/gres.conf").write_text("\n".join(rows) + "\n")
