"""Ends what a process of the lab has started, however that process itself ends.

One child process per process of the lab holds the reading end of a pipe. It learns which programs run, and
when the pipe closes because its parent is gone, kill -9 included, it kills them. (PR_SET_PDEATHSIG would not
do: it fires when the thread that started a program ends, and nodes boot in threads of their own.)
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

KEEP = "keep"
DROP = "drop"

END_SECONDS = 10.0

_lock = threading.Lock()
_watchdog: tuple[int, subprocess.Popen[str]] | None = None
"""The process that started it, and the watchdog itself."""


def keep(group: int) -> None:
    """Kill the process group `group` when this process ends."""
    _tell(f"{KEEP} {group}")


def drop(group: int) -> None:
    """Forget a group that has ended: its number may soon be somebody else's."""
    _tell(f"{DROP} {group}")


def keep_daemons(folder: Path) -> None:
    """Kill the daemons that have `*.pid` files under `folder` when this process ends."""
    _tell(f"{KEEP} {folder}")


def drop_daemons(folder: Path) -> None:
    """Forget the daemons of a folder."""
    _tell(f"{DROP} {folder}")


def running_in(folder: Path) -> list[str]:
    """Return the command lines of running processes that name `folder`, in arguments or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = ((process / each).read_bytes() for each in ("cmdline", "environ"))
        except OSError:
            continue
        if f"{folder}/".encode() in command + environment:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def _tell(line: str) -> None:
    global _watchdog  # noqa: PLW0603 - one per process
    with _lock:
        if _watchdog is None or _watchdog[0] != os.getpid():
            _watchdog = os.getpid(), _start()
        stdin = _watchdog[1].stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()


def _start() -> subprocess.Popen[str]:
    # A session of its own: a Ctrl-C in the terminal is for the others.
    return subprocess.Popen(
        [sys.executable, "-S", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
    )


@atexit.register
def _end() -> None:
    if _watchdog is not None and _watchdog[0] == os.getpid():
        process = _watchdog[1]
        assert process.stdin is not None
        process.stdin.close()
        process.wait(END_SECONDS)


def _watch() -> None:
    kept: set[str] = set()
    for line in sys.stdin:
        verb, _, what = line.rstrip("\n").partition(" ")
        if verb == KEEP:
            kept.add(what)
        else:
            kept.discard(what)
    for what in kept:
        if what.isdigit():
            with suppress(ProcessLookupError):
                os.killpg(int(what), signal.SIGKILL)
            continue
        for file in Path(what).rglob("*.pid"):
            with suppress(OSError, ValueError):
                os.kill(int(file.read_text()), signal.SIGKILL)


if __name__ == "__main__":
    _watch()
