"""What a process and its children use, as the kernel tells."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from checks.kernel.source.records import KmsgDevice, KmsgFile
from tests.lab.kmsg.device import records

CPUCLOCK_SCHED = 2
"""Clock of all threads of a process, ended ones too, in nanoseconds (Linux include/linux/posix-timers.h)."""


class Usage:
    """CPU since now and memory of process `pid`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._before = self._used()

    def cpu_seconds(self, *, children: bool = True) -> float:
        """Return what it has used since this was made, with its living children; without them, since ever."""
        return self._used() - self._before if children else _cpu(self.pid)

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


@contextmanager
def awake(pids: Sequence[int]) -> Iterator[None]:
    """Keep the memory of the machine, and that of the processes, where it is.

    The host of a virtual machine may take back what rests for a second, and the guest pays for having it
    again as if it had worked: 70 µs a page on one such host. So one core copies memory, as a job does that
    feeds GPUs, and a byte of every resident page of the processes is read ten times a second.
    """
    over = threading.Event()
    reader = threading.Thread(target=_read_all, args=(pids, over), daemon=True)
    copier = subprocess.Popen([sys.executable, "-c", _COPY], stdin=subprocess.DEVNULL)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()
        copier.kill()
        copier.wait()


def _read_all(pids: Sequence[int], over: threading.Event) -> None:
    while not over.wait(AWAKE_SECONDS):
        for pid in pids:
            with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
                for address in _resident(pid):
                    os.pread(memory.fileno(), 1, address)


def _resident(pid: int) -> Iterator[int]:
    """Yield the addresses of the process's pages that are in memory: reading another would bring it in."""
    with Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pagemap:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights = line.split(" ")[:2]
            first, end = (int(each, 16) // PAGE for each in place.split("-"))
            if "r" not in rights or line.endswith(("[vvar]", "[vsyscall]")):
                continue
            entries = array("Q", os.pread(pagemap.fileno(), (end - first) * 8, first * 8))
            yield from ((first + page) * PAGE for page, entry in enumerate(entries) if entry >> 63)


AWAKE_SECONDS = 0.1
PAGE = 4096

_COPY = "here, there = bytearray(1 << 26), bytearray(1 << 26)\nwhile True: there[:] = here"


def waking_factor(asleep_seconds: float = 10.0) -> float:
    """Return how much more CPU time a piece of work takes after a sleep than right after itself.

    A few on a machine of one's own; 100 in a virtual machine whose host takes back what rests.
    """
    warm = min(_work() for _ in range(50))
    time.sleep(asleep_seconds)
    return _work() / warm


def _work() -> float:
    began = time.thread_time()
    json.dumps([{"number": number, "text": str(number)} for number in range(300)])
    return time.thread_time() - began


def kmsg_read_seconds(wanted: int = 100_000) -> float | None:
    """Return the CPU time in which the agent reads one record of /dev/kmsg; None where it may not."""
    try:
        descriptor = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    device, taken, began = KmsgDevice(descriptor, KMSG), 0, time.process_time()
    while taken < wanted:
        os.lseek(descriptor, 0, os.SEEK_SET)
        before = taken
        while read := device.block().records:
            taken += read
        if taken == before:
            return None
    device.close()
    return (time.process_time() - began) / taken


def file_read_seconds(texts: list[str]) -> float:
    """Return the CPU time in which the agent reads one record of a plain file, without looking at it."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "kmsg"
        log.write_bytes(records(texts, 0))
        file = KmsgFile(os.open(log, os.O_RDONLY), log, 0.01)
        began = time.process_time()
        while file.block().records:
            pass
        spent = time.process_time() - began
        file.close()
        return spent / len(texts)


KMSG = Path("/dev/kmsg")

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
