"""The demo leaves nothing behind, however it is ended."""

import os
import pty
import select
import sys
import time
from pathlib import Path

import pytest

from tools.bench.process import Usage

PATIENCE_SECONDS = 90.0


def wait_for_text(terminal: int, text: bytes) -> None:
    """Read from the terminal until the text was there."""
    shown, until = b"", time.monotonic() + PATIENCE_SECONDS
    while text not in shown:
        assert time.monotonic() < until, shown[-2000:]
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 65_536)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_terminal_that_is_closed_ends_the_demo_and_all_that_it_started() -> None:
    demo, terminal = pty.fork()
    if demo == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "tools.demo"])
    wait_for_text(terminal, b"http://")
    started = [each.pid for each in Usage(demo).children()]
    assert len(started) > 10
    os.close(terminal)
    until = time.monotonic() + PATIENCE_SECONDS
    while os.waitpid(demo, os.WNOHANG) == (0, 0):
        assert time.monotonic() < until, "the demo goes on without its terminal"
        time.sleep(0.1)
    while any(Path(f"/proc/{each}").exists() for each in started):
        assert time.monotonic() < until, "what the demo started is still there"
        time.sleep(0.1)
