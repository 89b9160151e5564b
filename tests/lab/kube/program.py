"""A child process that ends with its parent, whatever ends the parent."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

LEASH = """exec 3<&0
"$@" </dev/null 3<&- & child=$!
{ cat <&3 >/dev/null; kill "$child"; } 2>/dev/null &
wait "$child"
"""
"""A shell between us and the program: it ends the program when our end of its standard input closes."""
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

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if it does not end in time."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        try:
            self._shell.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL: it gets no chance to say goodbye."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait(PATIENCE_SECONDS)
        if self._shell.stdin is not None:
            self._shell.stdin.close()
