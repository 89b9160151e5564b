"""Snapshots of messages, in files that people read when the words change."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parent / "snapshots"


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Compare a value with the file that is named after the test; UPDATE_SNAPSHOTS=1 writes the file.

    A text is kept as it is, any other value as JSON.
    """

    def compare(value: object) -> None:
        name = request.node.name.removeprefix("test_").replace("[", "-").rstrip("]")
        is_text = isinstance(value, str)
        file = DIRECTORY / f"{name}{'.txt' if is_text else '.json'}"
        text = f"{value if is_text else json.dumps(value, indent=1, ensure_ascii=False)}\n"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            file.write_text(text)
        assert text == file.read_text(), f"{file} differs; if the new words are right, set UPDATE_SNAPSHOTS=1"

    return compare
