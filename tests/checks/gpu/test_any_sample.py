"""Whatever the witnesses say, no GPU check fails to look, and none accuses a GPU that nobody has seen."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.check import Check
from checks.gpu_sample import (
    BoardSample,
    FabricSample,
    GpuSample,
    GpuSnapshot,
    NvmlLibrary,
    NvmlRefused,
    PciGpu,
)
from checks.registry import CHECKS
from tests.checks.gpu.harness import ONE, TWO, GpuHarness

GPU_CHECKS = [each for each in CHECKS if each.needs_gpus]
COUNTER = st.none() | st.integers(0, 2**64 - 1)
FLAG = st.none() | st.booleans()
CODE = st.sampled_from([0, 3, 4, 6, 9, 10, 14, 15, 16, 18, 999, 12345])
ADDRESS = st.sampled_from([ONE, TWO])

BOARDS = st.builds(
    BoardSample,
    sram_exceeded=FLAG,
    inforom=st.none() | CODE,
    power=st.none() | CODE,
    persistence=FLAG,
    mig=FLAG,
)
FABRICS = st.builds(
    FabricSample,
    state=st.integers(0, 15),
    status=CODE,
    clique=st.integers(0, 2**32 - 1),
    multinode=st.booleans(),
)
COUNTERS = (
    *(
        "ecc_corrected",
        "ecc_uncorrected",
        "retired_pages",
        "remapped_rows",
        "recovery_action",
        "pcie_replays",
    ),
    *(
        "link_crc",
        "link_replays",
        "link_recoveries",
        "links",
        "links_up",
        "reasons",
        "slowed_ns",
        "slowed_sw_ns",
        "memory_used",
    ),
)
SAMPLES = st.builds(
    GpuSample,
    gpu=ADDRESS,
    failed=CODE,
    **dict.fromkeys(COUNTERS, COUNTER),
    retired_pending=FLAG,
    remap_pending=FLAG,
    remap_failure=FLAG,
    link_ber=st.none() | st.floats(0, 1),
    margin=st.none() | st.integers(-(2**31), 2**31 - 1),
    fabric=st.none() | FABRICS,
    board=st.none() | BOARDS,
    denied=st.tuples() | st.tuples(st.tuples(st.just("call"), CODE)),
)
FUNCTIONS = st.builds(
    PciGpu,
    gpu=ADDRESS,
    device=st.sampled_from(["10de:2330", "10de:2901", "10de:ffff"]),
    board=st.just("10de:16c1"),
    driver=st.sampled_from([None, "nvidia", "vfio-pci"]),
    alive=st.booleans(),
    width=st.none() | st.integers(0, 63),
    speed=st.none() | st.sampled_from([2.5, 16.0, 32.0, 99.0]),
)
GPUS = st.builds(
    GpuSnapshot,
    pci=st.lists(FUNCTIONS, max_size=2, unique_by=lambda each: each.gpu).map(tuple),
    switches=st.integers(0, 6),
    driver=st.none() | st.lists(ADDRESS, unique=True).map(tuple),
    library=st.none()
    | st.builds(NvmlLibrary, driver=st.just("570"), nvml=st.just("13"), gpus=st.just((ONE, TWO))),
    refused=st.none() | st.builds(NvmlRefused, st.just("nvmlInit"), CODE),
    samples=st.lists(SAMPLES, max_size=2, unique_by=lambda each: each.gpu).map(tuple),
    excluded=st.tuples() | st.just((TWO,)),
    misses=st.integers(0, 9),
)


@pytest.mark.parametrize("check", GPU_CHECKS, ids=lambda each: each.name)
@given(seen=st.lists(GPUS, min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_no_answer_makes_a_check_fail_to_look(check: Check, seen: list[GpuSnapshot]) -> None:
    harness = GpuHarness(check)
    for gpus in seen:
        harness.look(gpus, 4)
        assert harness.blind() == []
        assert {each.gpu for each in harness.findings().values()} <= {None, ONE, TWO}


@pytest.mark.parametrize("check", GPU_CHECKS, ids=lambda each: each.name)
def test_a_node_without_gpus_is_well(check: Check) -> None:
    harness = GpuHarness(check)
    assert harness.look(GpuSnapshot(pci=()), 20) == {}
    assert harness.blind() == []
