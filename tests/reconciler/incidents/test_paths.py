"""Which files of the incident branch are read, and which records still wait for an outcome."""

import pytest

from reconciler.incidents.paths import open_records, worth_reading

OPEN, CLOSED, ORPHAN = (f"incidents/2026/11/{name}" for name in ("a-open", "b-closed", "c-orphan"))
PATHS = frozenset(
    [
        f"{OPEN}/opened.yaml", f"{OPEN}/thread.yaml", f"{OPEN}/approval-1.yaml", f"{OPEN}/repair-1.yaml",
        f"{OPEN}/outcome-1.yaml", f"{OPEN}/approval-2.yaml", f"{OPEN}/repair-2.yaml",
        f"{CLOSED}/opened.yaml", f"{CLOSED}/repair-1.yaml", f"{CLOSED}/outcome-1.yaml",
        f"{CLOSED}/closed.yaml",
        f"{ORPHAN}/opened.yaml", f"{ORPHAN}/repair-1.yaml", f"{ORPHAN}/closed.yaml",
    ]
)  # fmt: skip


def test_a_record_is_open_until_it_has_an_outcome_or_its_incident_is_closed() -> None:
    assert open_records(PATHS) == (f"{OPEN}/repair-2.yaml",)


def test_only_decisions_are_read_and_only_where_something_is_left_to_do() -> None:
    assert worth_reading(PATHS) == [
        f"{OPEN}/approval-1.yaml", f"{OPEN}/approval-2.yaml", f"{OPEN}/outcome-1.yaml",
        f"{OPEN}/repair-1.yaml", f"{OPEN}/repair-2.yaml",
        f"{ORPHAN}/closed.yaml", f"{ORPHAN}/repair-1.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["repair-0.yaml", "repair-01.yaml", "repair-1000.yaml", "repair-1.yml"])
def test_a_file_of_another_name_is_no_record(name: str) -> None:
    assert open_records(frozenset([f"{OPEN}/{name}"])) == ()
