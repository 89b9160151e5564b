"""What people may type wrong is told in one line with exit status 2, and without a traceback."""

import runpy
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.program import ROOT

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_as_main(*command: str, **environment: str) -> tuple[int, str]:
        """Run a tool as `python -m` does; return its exit status and what it says on stderr."""
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", list(command))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / f"{command[0].replace('.', '/')}.py"), run_name="__main__")
        return int(str(ended.value.code)), capsys.readouterr().err

    return run_as_main


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"PORT": "abc"}, "PORT: 'abc' is not a port"),
        ({"PORT": "-1"}, "PORT: '-1' is not a port"),
        ({"PORT": "70000"}, "PORT: '70000' is not a port"),
        ({"AUTO": "perhaps"}, "AUTO: 'perhaps' is neither 1 nor 0"),
        ({"PATH": "/nonexistent"}, "git is not on PATH"),
    ],
)
def test_the_demo_says_in_one_line_what_it_cannot_use(run: Run, variables: dict[str, str], word: str) -> None:
    status, said = run("tools.demo", **variables)
    assert (status, said.count("\n")) == (2, 1), said
    assert said.startswith(f"demo: {word}")


def test_the_demo_says_in_one_line_that_its_port_is_busy(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        status, said = run("tools.demo", PORT=str(number))
    assert (status, said.count("\n")) == (2, 1), said
    assert said.startswith(f"demo: PORT: port {number} cannot be used: Address already in use")


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("tools.bench.loop", "--faults", "0"), "'0' is not a whole number of at least 1"),
        (("tools.bench.loop", "--faults", "many"), "'many' is not a whole number"),
        (("tools.bench.agent", "--idle-minutes", "-1"), "'-1' is not a number of minutes"),
        (("tools.bench.agent", "--lines", "0"), "'0' is not a whole number"),
        (("tools.bench.agent", "--out", "/proc/none/x.json"), "/proc/none/x.json cannot be written"),
        (("tools.bench.gpu", "--rounds", "-5"), "'-5' is not a whole number"),
        (("tools.bench.gpu", "--out", "/proc/none/x.json"), "/proc/none/x.json cannot be written"),
        (("tools.bench.gpu", "--agent-minutes", "nan"), "'nan' is not a number of minutes"),
        (("tools.bench.gpu", "--root", "/nonexistent"), "/nonexistent is not a folder"),
        (("tools.bench.gpu", "--load", "/nonexistent/load x"), "/nonexistent/load is not a program"),
        (("tools.mutants",), "the following arguments are required: modules"),
        (("tools.mutants", "no/such.py"), "no/such.py is not a Python file of this repository"),
        (("tools.mutants", "bot/cli.py", "--workers", "0"), "'0' is not a whole number"),
        (("tools.setup", "everything"), "usage: python -m tools.setup demo|check|test"),
    ],
)
def test_a_tool_refuses_arguments_that_it_cannot_use(run: Run, command: tuple[str, ...], word: str) -> None:
    status, said = run(*command)
    assert status == 2, said
    assert word in said.splitlines()[-1]
    assert "Traceback" not in said


def test_locks_that_are_missing_are_told_by_name(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/locks.py").write_text((ROOT / ".ci/locks.py").read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    done = subprocess.run(
        [sys.executable, tmp_path / ".ci/locks.py"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "requirements/build.lock is missing" in done.stderr
    assert "Traceback" not in done.stderr
