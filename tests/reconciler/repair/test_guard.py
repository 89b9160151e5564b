"""Invariant: never more nodes of a pool in repair than its budget, and never fewer than one may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.repair.guard import NoCapacity, budget, fleet_can_spare


@pytest.mark.parametrize(
    ("size", "percent", "allowed"),
    [
        (0, 2, 1),
        (1, 2, 1),
        (16, 2, 1),
        (99, 2, 1),
        (100, 2, 2),
        (149, 2, 2),
        (150, 2, 3),
        (1000, 10, 100),
        (16, 10, 1),
    ],
)
def test_the_budget_is_a_share_of_the_pool_and_at_least_one(size: int, percent: int, allowed: int) -> None:
    assert budget(size, percent) == allowed


def test_the_first_repair_of_a_pool_goes_and_the_second_waits_and_says_for_whom() -> None:
    pool = [f"gpu-{index:02d}" for index in range(16)]
    assert fleet_can_spare("gpu-01", pool, [], 2) is None
    assert fleet_can_spare("gpu-02", pool, ["gpu-01"], 2) == NoCapacity(
        "waits: 1 of 16 nodes of the pool are in repair (gpu-01), 1 allowed"
    )


def test_a_node_that_is_in_repair_already_needs_no_room() -> None:
    assert fleet_can_spare("gpu-01", ["gpu-01", "gpu-02"], ["gpu-01"], 2) is None


def test_repairs_of_other_pools_take_no_room() -> None:
    assert fleet_can_spare("gpu-01", ["gpu-01"], ["cpu-01", "cpu-02"], 2) is None


@given(st.integers(1, 300), st.integers(1, 10), st.data())
def test_admitting_one_by_one_never_exceeds_the_budget(size: int, percent: int, data: st.DataObject) -> None:
    pool = [str(index) for index in range(size)]
    in_repair: set[str] = set()
    for node in data.draw(st.lists(st.sampled_from(pool), max_size=40)):
        if fleet_can_spare(node, pool, in_repair, percent) is None:
            in_repair.add(node)
    assert len(in_repair) <= budget(size, percent)
