"""The recorded kernel lines, through the whole command: every case gives what it expects, nothing else.

`accept` names codes that may be told besides, `loose` the values of a code that may also be something else.
"""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from checks.kernel import classify


def recorded(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(case) for case in Path(f"tests/data/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


CASES = recorded("kernel_lines") + recorded("kernel_lines_2")
COMPARED = ("code", "subsystem", "gpu", "severity", "action", "event", "count")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_recorded_line_gives_what_it_expects(case: dict[str, Any], tmp_path: Path) -> None:
    log, out = tmp_path / "kernel.log", io.BytesIO()
    log.write_text(case["line"], encoding="utf-8")
    driver = ["--driver", case["driver"]] if "driver" in case else []

    assert classify.main([str(log), *driver], out, time.time()) in (0, 3)

    events = [json.loads(line) for line in out.getvalue().splitlines()]
    wanted = [{"count": 1, **each} for each in (case["expect"], *case.get("also", ())) if each["event"]]
    codes = {each["code"] for each in wanted}
    told = [each for each in events if each["code"] in codes or each["code"] not in case.get("accept", ())]
    if case["id"].startswith("q"):
        told, wanted = sorted(told, key=by_code), sorted(wanted, key=by_code)
    assert [compared(each, case) for each in told] == [compared(each, case) for each in wanted]


def by_code(event: dict[str, Any]) -> str:
    return str(event["code"])


def compared(event: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    loose = case.get("loose", {}).get(event["code"], {})
    return {name: event[name] for name in COMPARED if loose.get(name) != "any"}
