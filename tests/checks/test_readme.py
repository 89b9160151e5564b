"""The example of a check in CONTRIBUTING.md works."""

import re
from pathlib import Path

from checks.check import Check
from tests.checks.host.harness import Server, blind

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def test_the_example_of_a_check_is_one(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    made: dict[str, object] = {}
    exec(example, made)
    check = made["CHECK"]
    assert isinstance(check, Check)
    server = Server(tmp_path, check)
    assert "swaps" in blind(server.glance())
    server.write("proc/swaps", "Filename Type Size Used Priority")
    assert server.look(3) == []
    server.write("proc/swaps", "Filename Type Size Used Priority\n/swap.img file 8388604 512 -2")
    assert server.look(2) == ["swap - warning/ask"]
    server.write("proc/swaps", "Filename Type Size Used Priority")
    assert server.look(2) == []
