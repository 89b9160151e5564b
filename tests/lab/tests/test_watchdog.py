"""Nothing that the lab started outlives the process that started it."""

import subprocess
import sys
import time
from pathlib import Path

from tests.lab.program import ROOT
from tests.lab.watchdog import running_in

TEST = """
import time
from pathlib import Path
from tests.lab.cluster import Cluster

def test_something_long():
    with Cluster(Path({folder!r}), nodes=1):
        print("running", flush=True)
        time.sleep(120)
"""
PATIENCE_SECONDS = 60.0


def test_a_killed_test_run_leaves_no_program_behind(tmp_path: Path) -> None:
    folder, test = tmp_path / "cluster", tmp_path / "test_long.py"
    test.write_text(TEST.format(folder=str(folder)))
    argv = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    argv += ["-c", str(ROOT / "pyproject.toml"), str(test)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        shown = b""
        while b"running" not in shown and run.poll() is None:
            shown += run.stdout.readline()
        started = running_in(folder)
        run.kill()
    programs = [each.split()[2] for each in started if " -m " in each]
    assert sorted(each for each in programs if "." not in each) == ["bot", "checks", "reconciler"], shown
    until = time.monotonic() + PATIENCE_SECONDS
    while left := running_in(folder):
        assert time.monotonic() < until, left
        time.sleep(0.1)
