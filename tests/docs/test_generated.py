"""Pages that programs write are up to date, and a stale one is noticed."""

from pathlib import Path

import pytest

from bot.incidents.incident import TABLE, IncidentEvent, State
from tools import cited_tests, settings_page, state_diagram
from tools.generated import BEGIN, END, main, replaced

SETTINGS = {
    name: settings_page.classes(path.read_text(encoding="utf-8"))
    for name, path in settings_page.sources().items()
}


def test_the_state_diagram_is_that_of_the_table() -> None:
    assert main(state_diagram.PAGE, state_diagram.diagram(TABLE), "x", ["--check"]) == 0


def test_the_state_diagram_has_every_transition_and_no_other() -> None:
    drawn = {
        (before, event, after)
        for line in state_diagram.diagram(TABLE).splitlines()
        if ": " in line
        for arrow, _, events in [line.strip().partition(": ")]
        for before, _, after in [arrow.partition(" --> ")]
        for event in events.split(", ")
    }
    assert drawn == {(before.value, event.value, after.value) for (before, event), after in TABLE.items()}


def test_another_table_is_another_diagram() -> None:
    shorter = dict(list(TABLE.items())[1:])
    assert state_diagram.diagram(shorter) != state_diagram.diagram(TABLE)
    more = {**TABLE, (State.CLOSED, IncidentEvent.RENEWED): State.OPEN}
    assert "closed --> open: renewed" in state_diagram.diagram(more)


def test_the_settings_page_is_that_of_the_classes() -> None:
    assert main(settings_page.PAGE, settings_page.page(SETTINGS), "x", ["--check"]) == 0


# checks/settings.py gets its docstrings with its move to checks/agent/settings.py.
DESCRIBED = [name for name, path in settings_page.sources().items() if path.parent.name != "checks"]


@pytest.mark.parametrize("program", DESCRIBED)
def test_every_setting_has_a_docstring_of_its_own(program: str) -> None:
    assert sum(len(each.fields) for each in SETTINGS[program].values()) > 0
    assert settings_page.without_text(SETTINGS[program]) == []


def test_a_settings_class_is_read_with_types_defaults_and_docstrings() -> None:
    source = '''
class Inner(Table):
    """An inner table."""

    size: Annotated[int, Field(ge=1, le=9)] = 3
    """How many."""


class Settings(Base):
    """The settings.

    More of them.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    mode: Literal["a", "b"] = "a"
    """Which
    way."""

    file: Path | None = None
    """Where."""

    wait: Seconds
    inner: Inner | None = None
    """The table `[x.inner]`."""
'''
    known = settings_page.classes(source)
    assert settings_page.without_text(known) == ["Settings.wait"]
    page = settings_page.page({"reconciler": {}, "bot": {}, "agent": known})
    assert page.splitlines() == [
        "## `[agent]`",
        "",
        "The settings.",
        "",
        "| key | variable | type | default | meaning |",
        "|---|---|---|---|---|",
        '| `mode` | `CLUSTERWRIGHT_AGENT__MODE` | `"a"` or `"b"` | `"a"` | Which way. |',
        "| `file` | `CLUSTERWRIGHT_AGENT__FILE` | path | none | Where. |",
        "| `wait` | `CLUSTERWRIGHT_AGENT__WAIT` | seconds | required |  |",
        "",
        "## `[agent.inner]`",
        "",
        "An inner table.",
        "",
        "| key | variable | type | default | meaning |",
        "|---|---|---|---|---|",
        "| `size` | `CLUSTERWRIGHT_AGENT__INNER__SIZE` | integer, 1 to 9 | `3` | How many. |",
    ]


def test_a_stale_page_is_named_and_only_then_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Top.\n\n{BEGIN}\n\nold\n\n{END}\nBottom.\n")
    assert main(page, "old", "tools.x", ["--check"]) == 0
    assert main(page, "new", "tools.x", ["--check"]) == (
        "page.md is stale; update it with `python -m tools.x`, then commit it"
    )
    assert "old" in page.read_text()
    assert main(page, "new", "tools.x", []) == 0
    assert page.read_text() == f"Top.\n\n{BEGIN}\n\nnew\n\n{END}\nBottom.\n"
    assert main(page, "new", "tools.x", ["--chekc"]) == "usage: python -m tools.x [--check]"
    assert str(main(tmp_path / "none.md", "new", "tools.x", [])).startswith(f"{tmp_path}/none.md: ")


@pytest.mark.parametrize(
    "page", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"]
)
def test_a_page_without_one_pair_of_markers_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="must have one line"):
        replaced(page, "text")


def test_every_test_that_the_docs_name_is_there() -> None:
    assert cited_tests.main(["--check"]) == 0


def test_a_test_that_moved_gets_its_new_path_and_one_that_is_gone_is_named() -> None:
    tests = cited_tests.defined(
        [("tests/a.py", "def test_one() -> None:\n"), ("tests/b/c.py", "    async def test_two(\n")]
    )
    page = "`tests/a.py::test_one` `tests/a.py::test_two` `tests/a.py::test_three`"
    new, wrong = cited_tests.corrected(page, tests)
    assert new == "`tests/a.py::test_one` `tests/b/c.py::test_two` `tests/a.py::test_three`"
    assert wrong == [
        "`tests/a.py::test_two` moved to tests/b/c.py",
        "`tests/a.py::test_three` names no test; it is gone",
    ]
