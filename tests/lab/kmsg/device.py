"""Kernel logs that are devices: one that gives a record a read, and calls on it that fail."""

import os
import subprocess
import termios
import time
import tty
from pathlib import Path

SOURCE = Path(__file__).with_name("faulty.c")


def records(texts: list[str], first: int) -> bytes:
    """Return the texts as records of /dev/kmsg, numbered from `first`, logged now."""
    usec = time.monotonic_ns() // 1000
    return "".join(f"4,{first + place},{usec},-;{text}\n" for place, text in enumerate(texts)).encode()


class Device:
    """A real character device that gives one record a read: a pseudo-terminal without echo."""

    def __init__(self, path: Path) -> None:
        self._writer, self._reader = os.openpty()
        tty.setraw(self._reader)
        attributes = termios.tcgetattr(self._reader)
        attributes[3] |= termios.ICANON
        attributes[6] = [b"\x00"] * len(attributes[6])
        termios.tcsetattr(self._reader, termios.TCSANOW, attributes)
        path.unlink(missing_ok=True)
        path.symlink_to(os.ttyname(self._reader))
        self._sequence = -1

    def write(self, texts: list[str]) -> int:
        """Log the texts; waits while the reader is behind. Returns the number of the last record."""
        rest = memoryview(records(texts, self._sequence + 1))
        while rest:
            rest = rest[os.write(self._writer, rest[:2048]) :]
        self._sequence += len(texts)
        return self._sequence

    def lose(self, count: int) -> None:
        """Leave out so many numbers, as records do that were overwritten."""
        self._sequence += count

    def close(self) -> None:
        """Take the device away: those who read it get an error from now on."""
        os.close(self._writer)
        os.close(self._reader)


class Faults:
    """Errors that a process meets on its kernel log; it has to be started with `environment`."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._plan = folder / "faults"
        self._library = folder / "faulty.so"
        self._log = log
        command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
        command += ["-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, timeout=60)

    @property
    def environment(self) -> dict[str, str]:
        """What a process has to be started with."""
        return {
            "LD_PRELOAD": str(self._library),
            "KMSG_PATH": str(self._log),
            "KMSG_FAULTS": str(self._plan),
        }

    def once(self, call: str, *numbers: int) -> None:
        """Let the next calls fail with these error numbers, one after another."""
        self._write("".join(f"{call} {number}\n" for number in numbers))

    def always(self, call: str, number: int) -> None:
        """Let every such call fail until `mend`."""
        self._write(f"*{call} {number}\n")

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._plan.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        new = self._plan.with_suffix(".new")
        new.write_text(text)
        new.replace(self._plan)
