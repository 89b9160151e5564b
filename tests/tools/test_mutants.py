"""`make mutants`: which changes it makes, and which of them it calls survivors."""

import subprocess
from pathlib import Path

import pytest

from tools.mutants import NothingToTryError, find, main, survivors
from tools.mutation import mutants

MODULE = '''"""A module."""

import logging

log = logging.getLogger(__name__)


def is_spare(count: int, limit: int = 3) -> bool:
    """Docstrings stay."""
    log.info("asked")
    if not count:
        raise ValueError("none")
    return count < limit and is_odd(count)


def is_odd(count: int) -> bool:
    return count % 2 == 1
'''
SMALL = "def is_spare(count: int) -> bool:\n    return count < 3\n"
STRONG = """
from pack.module import is_spare

def test_spare():
    assert [is_spare(each) for each in (2, 3)] == [True, False]
"""
WEAK = """
from pack.module import is_spare

def test_spare():
    assert is_spare(1)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in {"pack/__init__.py": "", "pack/module.py": SMALL, "pyproject.toml": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests/pack").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def test_each_kind_of_change_is_made_once_and_keeps_the_line_numbers() -> None:
    found = [(each.line, each.was, each.now) for each in mutants(MODULE)]
    assert found == [
        (8, "3", "4"),
        (11, "not count", "count"),
        (12, "raise ValueError('none')", "pass"),
        (13, "return count < limit and is_odd(count)", "return None"),
        (13, "count < limit and is_odd(count)", "count < limit or is_odd(count)"),
        (13, "count < limit", "count >= limit"),
        (13, "count < limit", "count <= limit"),
        (17, "return count % 2 == 1", "return None"),
        (17, "count % 2 == 1", "count % 2 != 1"),
        (17, "2", "3"),
        (17, "1", "2"),
    ]
    assert all(each.text.count("\n") == MODULE.count("\n") for each in mutants(MODULE))


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("def f(ä, b):\n    return 'ü' if b else ä\n", "not b"),
        ("def f(a):\n    while a.ready():\n        a.go()\n", "not a.ready()"),
        ("def f(a):\n    a.go()\n", "pass"),
        ("X = 1 + 2\n", "1 - 2"),
        ("def f(a):\n    return ', '.join(a)\n", "'XX, '"),
        ("def f(a, b):\n    return a is not b\n", "a is b"),
    ],
)
def test_a_change_is_made_where_it_stands(text: str, now: str) -> None:
    assert now in [each.now for each in mutants(text)]


@pytest.mark.parametrize(
    ("tests", "left"), [(WEAK, {"4", "count <= 3"}), (STRONG, set())], ids=["weak", "strong"]
)
def test_a_change_that_no_test_notices_survives(repository: Path, tests: str, left: set[str]) -> None:
    (repository / "tests/pack/test_module.py").write_text(tests)
    found = list(survivors(repository, find(repository, "pack/module.py")))
    assert len(found) == 4
    assert {(each.line, each.now) for each in found if each} == {(2, now) for now in left}
    assert (repository / "pack/module.py").read_text() == SMALL


def test_tests_that_fail_anyway_judge_nothing(repository: Path) -> None:
    (repository / "tests/pack/test_module.py").write_text("def test_it():\n    assert False\n")
    with pytest.raises(NothingToTryError, match="ends with 1 without a change"):
        list(survivors(repository, find(repository, "pack/module.py")))


def test_a_module_is_judged_by_the_folder_that_mirrors_it(repository: Path) -> None:
    (repository / "tests/pack/test_module_more.py").write_text("")
    assert find(repository, "pack/module.py").runs == (("tests/pack/test_module_more.py",),)
    (repository / "tests/pack/test_another.py").write_text("")
    named, rest = find(repository, "pack/module.py").runs
    assert named == ("tests/pack/test_module_more.py",)
    assert rest == ("tests/pack", "--ignore=tests/pack/test_module_more.py")
    (repository / "pack/deep").mkdir()
    (repository / "pack/deep/other.py").write_text("")
    assert find(repository, "pack/deep/other.py").runs == (("tests/pack",),)
    assert find(repository, "pack/module.py", ["tests"]).runs == (("tests",),)


def test_what_is_no_module_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no/such.py"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
