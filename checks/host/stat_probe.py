"""Stat of a path in a child process with a deadline: a dead file server hangs whoever asks, for ever."""

import os
import select
import signal
import time
from pathlib import Path

PROGRAM = "stat"
"""The coreutils program: it costs a thousandth of what a Python interpreter costs."""


class StatProbe:
    """Runs `stat` on paths. A child that hangs cannot be ended: it is left behind and reaped later."""

    def __init__(self) -> None:
        self._hanging: dict[str, int] = {}

    def answers(self, paths: dict[str, Path], seconds: float) -> dict[str, bool]:
        """Return for each path whether `stat` returned within `seconds`, whatever the result."""
        waiting: dict[str, int] = {}
        for name, path in paths.items():
            if name in self._hanging and not _ended(self._hanging[name]):
                continue
            self._hanging.pop(name, None)
            waiting[name] = _spawn(path)
        left = _wait(waiting, seconds)
        for name in left:
            os.kill(waiting[name], signal.SIGKILL)
            self._hanging[name] = waiting[name]
        return {name: name not in self._hanging for name in paths}


def _spawn(path: Path) -> int:
    actions = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    return os.posix_spawnp(PROGRAM, [PROGRAM, "--", str(path)], os.environ, file_actions=actions)


def _wait(children: dict[str, int], seconds: float) -> list[str]:
    """Return the names of the children that are still running after `seconds`."""
    deadline = time.monotonic() + seconds
    left = []
    for name, child in children.items():
        descriptor = os.pidfd_open(child)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(descriptor)
        if not (ended and _ended(child)):
            left.append(name)
    return left


def _ended(child: int) -> bool:
    """Whether the child has ended; it is reaped then."""
    try:
        return os.waitpid(child, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True
