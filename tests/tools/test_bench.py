"""The benchmarks that a machine without a GPU can run, cut short."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.missing import require
from tests.lab.program import ROOT

TIMEOUT = 120.0


def test_every_nvml_call_is_measured_with_or_without_a_gpu(tmp_path: Path) -> None:
    require(None if shutil.which("cc") else "no C compiler here; `make test` says how to install one")
    out = tmp_path / "bench.json"
    command = [sys.executable, "-m", "tools.bench.gpu", "--stand-in", "--agent-minutes", "0"]
    command += ["--rounds", "20", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, timeout=TIMEOUT, check=True)
    document = json.loads(out.read_text())
    assert document["gpus"]
    measured = {each["name"]: each["count"] for each in document["idle"]["calls"]}
    assert measured["SRAM status"] == measured["clocks event reasons"] == 20
    assert all(each["median"] > 0 for each in document["idle"]["round trips"])
