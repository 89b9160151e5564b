"""leftovers: memory in use without a program, and who counts as one."""

from pathlib import Path

import pytest

from checks.finding import Action, Severity
from checks.gpu.gpu_users import has_no_users
from checks.gpu.leftovers import CHECK, MIB
from checks.gpu_sample import GpuSnapshot
from checks.policy import GpuLimits, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, gpus, sample
from tests.lab.nvml.bus import use

FREE = gpus(sample(ONE), sample(TWO))
BUSY = gpus(sample(ONE, memory_used=None), sample(TWO, memory_used=None))


def left(mib: int) -> GpuSnapshot:
    return gpus(sample(ONE, memory_used=mib * MIB), sample(TWO))


def test_memory_without_a_program_is_told_after_three_looks_and_until_it_is_free() -> None:
    harness = GpuHarness(CHECK)
    assert harness.look(left(501), 2) == {}
    found = harness.look(left(501))[f"leftovers/{ONE}"]
    assert (found.severity, found.action, found.evidence) == (
        Severity.WARNING,
        Action.ASK,
        "501 MiB in use",
    )
    assert harness.look(left(501), 100) != {}
    assert harness.look(FREE) == {}


def test_up_to_the_limit_memory_is_free_and_the_limit_is_the_policys() -> None:
    assert GpuHarness(CHECK).look(left(500), 5) == {}
    generous = Policy(gpu=GpuLimits(leftover_mib=1000.0))
    assert GpuHarness(CHECK, generous).look(left(1000), 5) == {}
    assert GpuHarness(CHECK, generous).look(left(1001), 3) != {}


def test_while_a_program_is_there_nothing_is_found_and_what_was_found_stands() -> None:
    harness = GpuHarness(CHECK)
    assert harness.look(BUSY, 100) == {}
    harness.look(left(9000), 3)
    assert harness.look(BUSY, 100) != {}
    assert harness.look(FREE) == {}


def test_memory_that_a_job_is_just_giving_back_is_nothing() -> None:
    harness = GpuHarness(CHECK)
    for _ in range(20):
        assert harness.look(left(9000), 2) == {}
        assert harness.look(BUSY) == {}


@pytest.mark.parametrize("module", ["nvidia_uvm", "nvidia_drm"])
def test_one_open_handle_is_a_program(tmp_path: Path, module: str) -> None:
    use(tmp_path, 0)
    assert has_no_users(tmp_path)
    use(tmp_path, 1, module)
    assert not has_no_users(tmp_path)
    use(tmp_path, 0, module)
    assert has_no_users(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"-1\n", b"\xff"])
def test_where_the_kernel_does_not_count_there_may_be_a_program(
    tmp_path: Path, content: bytes | None
) -> None:
    use(tmp_path, 0)
    count = tmp_path / "sys/module/nvidia_uvm/refcnt"
    count.unlink() if content is None else count.write_bytes(content)
    assert not has_no_users(tmp_path)


@pytest.mark.parametrize(
    ("memory", "processors", "free"),
    [
        ("0-1", "0-1", True),
        ("0", "0-1", True),
        ("0-1,2,10-17", "0-1", False),
        ("0-1", "nonsense", False),
        ("nonsense", "0-1", False),
    ],
)
def test_the_kernel_is_a_program_where_it_has_memory_beside_no_processor(
    tmp_path: Path, memory: str, processors: str, *, free: bool
) -> None:
    use(tmp_path, 0)
    nodes = tmp_path / "sys/devices/system/node"
    nodes.mkdir(parents=True)
    (nodes / "has_memory").write_text(f"{memory}\n")
    (nodes / "has_cpu").write_text(f"{processors}\n")
    assert has_no_users(tmp_path) is free
