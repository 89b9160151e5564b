"""The recorded kernel lines, through the whole command: every case gives what it expects, nothing else."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from checks.kernel import classify

CASES = [
    json.loads(case)
    for case in Path("tests/data/kernel_lines.jsonl").read_text(encoding="utf-8").splitlines()
]
COMPARED = ("code", "subsystem", "gpu", "severity", "action", "event")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_recorded_line_gives_what_it_expects(case: dict[str, Any], tmp_path: Path) -> None:
    log, out = tmp_path / "kernel.log", io.BytesIO()
    log.write_text(case["line"], encoding="utf-8")
    driver = ["--driver", case["driver"]] if "driver" in case else []

    assert classify.main([str(log), *driver], out, time.time()) == 0

    events = [json.loads(line) for line in out.getvalue().splitlines()]
    wanted = [each for each in (case["expect"], *case.get("also", ())) if each["event"]]
    assert [{name: event[name] for name in COMPARED} for event in events] == [
        {name: each[name] for name in COMPARED} for each in wanted
    ]
    assert [event["count"] for event in events] == [each.get("count", 1) for each in wanted]
