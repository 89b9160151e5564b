"""A child process that ends with its parent, whatever ends the parent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

LEASH = """exec 3<&0
"$@" </dev/null 3<&- & child=$!
{ if read _ <&3; then kill "$child"; cat <&3 >/dev/null; fi; kill -9 "$child"; } 2>/dev/null &
wait "$child"
"""
"""A shell around the program: a line on its standard input asks the program to end, its end kills it."""
PATIENCE_SECONDS = 15.0
"""From SIGTERM to SIGKILL."""


class Program:
    """One running program whose output goes to a file."""

    def __init__(self, argv: list[str], log: Path) -> None:
        self.name = Path(argv[0]).name
        self.log = log
        with log.open("ab") as output:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", LEASH, "leash", *argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def check(self) -> None:
        """Do nothing while it runs.

        Raises:
            RuntimeError: it has ended by itself; the text quotes the end of its log.
        """
        if self._shell.poll() is not None:
            last = self.log.read_text(errors="replace").strip().splitlines()[-3:]
            raise RuntimeError(
                f"{self.name} ended by itself ({self._shell.returncode}); {self.log}: {' | '.join(last)}"
            )

    def freeze(self) -> None:
        """Let it do nothing until `thaw`."""
        os.killpg(self._shell.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.killpg(self._shell.pid, signal.SIGCONT)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if it does not end in time."""
        if self._shell.poll() is None and self._shell.stdin is not None:
            with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
                self._shell.stdin.write(b"\n")
                self._shell.stdin.flush()
                self._shell.wait(PATIENCE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all of its group: it gets no chance to say goodbye."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait(PATIENCE_SECONDS)
        if self._shell.stdin is not None:
            self._shell.stdin.close()
