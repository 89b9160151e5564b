"""One of the product's programs as a real process: settings in its environment, log in a file."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.lab import watchdog

ROOT = Path(__file__).resolve().parents[2]

STOP_SECONDS = 30.0
"""How long a program may take to stop on SIGTERM before the lab counts it as hung."""


def end_as_by_keyboard() -> None:
    """Let SIGTERM and a closed terminal end this process as Ctrl-C does: with what it started."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)


class Program:
    """`python -m PACKAGE` under the lab: started, killed hard, started again with the same settings."""

    def __init__(self, package: str, environment: Mapping[str, str], log: Path) -> None:
        self.package = package
        self.log = log
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError(f"{self.package} is not running")
        return self._process.pid

    def start(self) -> None:
        if self.running:
            return
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self.package],
                cwd=ROOT,
                env={**inherited, "PYTHONUNBUFFERED": "1", **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        watchdog.keep(self._process.pid)

    def kill(self) -> None:
        """End it with SIGKILL, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it with SIGTERM, as Kubernetes would; raises RuntimeError if it does not stop in time."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{self.package} did not stop on {how.name}; see {self.log}") from None
        finally:
            watchdog.drop(process.pid)
