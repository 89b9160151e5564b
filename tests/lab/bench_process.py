"""What a process and its children use, as the kernel tells."""

import contextlib
import os
import re
import time
from pathlib import Path

CPUCLOCK_SCHED = 2
"""Clock of all threads of a process, ended ones too, in nanoseconds (Linux include/linux/posix-timers.h)."""


class Usage:
    """CPU since now and memory of process `pid`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._before = self._used()

    def cpu_seconds(self) -> float:
        """Return what it and its living children have used since this was made."""
        return self._used() - self._before

    def rss_mb(self) -> float:
        """Return its resident memory."""
        return self._status("VmRSS")

    def anonymous_mb(self) -> float:
        """Return the part of it that no file backs."""
        return self._status("RssAnon")

    def peak_mb(self) -> float:
        """Return the most it ever had."""
        return self._status("VmHWM")

    def children(self) -> list["Usage"]:
        """Return its children and theirs."""
        return [Usage(pid) for pid in _descendants(self.pid)]

    def _used(self) -> float:
        return sum(_cpu(pid) for pid in (self.pid, *_descendants(self.pid)))

    def _status(self, field: str) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
        assert found is not None, f"/proc/{self.pid}/status has no {field}"
        return int(found[1]) / 1024


def together_mb(processes: list[Usage]) -> float:
    """Return the resident memory of all, what they share counted once: what a cgroup is charged at most."""
    private, files = 0, dict[tuple[str, str], int]()
    for process in processes:
        for mapping in _MAPPING.finditer(_read(Path(f"/proc/{process.pid}/smaps"))):
            resident, anonymous = int(mapping["rss"]), int(mapping["anonymous"])
            private += anonymous
            place = mapping["file"], mapping["offset"]
            files[place] = max(files.get(place, 0), resident - anonymous)
    return (private + sum(files.values())) / 1024


def kmsg_read_seconds(records: int = 100_000) -> float | None:
    """Return the CPU time of reading one record of /dev/kmsg; None where it may not be read."""
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.read(descriptor, KMSG_BYTES)
    except OSError:
        return None
    taken, began = 0, time.process_time()
    while taken < records:
        os.lseek(descriptor, 0, os.SEEK_SET)
        before = taken
        with contextlib.suppress(BlockingIOError):
            while os.read(descriptor, KMSG_BYTES):
                taken += 1
        if taken == before:
            return None
    os.close(descriptor)
    return (time.process_time() - began) / taken


KMSG_BYTES = 65_536
"""Bytes of one read, as the agent asks for them."""

_MAPPING = re.compile(
    r"^[0-9a-f]+-[0-9a-f]+ \S+ (?P<offset>[0-9a-f]+) \S+ \d+ *(?P<file>.*)\n(?:[A-Z]\w+: .*\n)*?"
    r"Rss: +(?P<rss>\d+) kB\n(?:[A-Z]\w+: .*\n)*?Anonymous: +(?P<anonymous>\d+) kB$",
    re.MULTILINE,
)


def _cpu(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in _listed(Path(f"/proc/{pid}/task")):
        for child in _read(Path(f"/proc/{pid}/task/{task}/children")).split():
            found += [int(child), *_descendants(int(child))]
    return found


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are what is wanted
    except OSError:
        return []


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
