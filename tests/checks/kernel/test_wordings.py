"""What kernels and drivers of other versions print, and what has to be made of it.

`tests/data/kernel_wordings.jsonl` has a row a wording: `line` (may hold several lines) and `means`, which is
subsystem, code, GPU or `-`, severity/action and the count when it is not one; empty for no event.
"""

import json
import time
from pathlib import Path

import pytest

from checks.kernel.classify import Classifier

ROWS = [
    json.loads(row)
    for row in Path("tests/data/kernel_wordings.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['group']}-{number}" for number, row in enumerate(ROWS, 1)])
def test_each_wording_means_exactly_one_event_or_none(row: dict[str, str]) -> None:
    assert classified(row["line"]) == row["means"], row["line"]


def classified(lines: str) -> str:
    classifier, now = Classifier(), time.time()
    events = []
    for number, line in enumerate(lines.split("\n"), start=1):
        events += classifier.feed(line.encode("utf-8", "surrogateescape"), number, now)
    events += classifier.finish()
    return " | ".join(
        f"{each.subsystem} {each.code} {each.gpu or '-'} {each.severity}/{each.action}"
        + (f" x{each.count}" if each.count > 1 else "")
        for each in events
        if each.event
    )
