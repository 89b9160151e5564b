"""The NVML child under the real pynvml, over a library that answers from a file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checks.gpu.nvml import bit_error_rate
from checks.gpu.nvml_process import NoAnswer, NvmlChild, may_start
from checks.gpu_sample import FabricSample, GpuSample, NvmlLibrary, NvmlRefused, OpenLibrary, ReadGpu
from tests.checks.gpu.harness import ONE, TWO
from tests.lab.nvml.library import Machine, build

RSS_LIMIT_KB = 35_000
"""What the child may take (issue's target)."""


def read(child: NvmlChild, gpu: str = ONE, *, board: bool = False, memory: bool = False) -> GpuSample:
    """Read a GPU, opening the library first in a new child."""
    if child.pid is None:
        assert isinstance(child.ask(OpenLibrary()), NvmlLibrary)
    answer = child.ask(ReadGpu(gpu, board, memory))
    assert isinstance(answer, GpuSample), answer
    return answer


def status(pid: int, key: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def test_the_library_tells_its_version_and_its_gpus_by_address(child: NvmlChild) -> None:
    assert child.ask(OpenLibrary()) == NvmlLibrary(driver="570.172.08", nvml="13.570", gpus=(ONE, TWO))


def test_a_healthy_gpu_is_read_in_full(child: NvmlChild) -> None:
    child.ask(OpenLibrary())
    found = read(child, board=True)
    assert (found.failed, found.denied, found.ecc_uncorrected, found.remap_failure) == (0, (), 0, False)
    assert (found.links, found.links_up, found.reasons, found.recovery_action) == (18, 18, 1, 0)
    assert found.margin == 47, "45 degrees below the limit, and the hardware slows down 2 above it"
    assert found.fabric == FabricSample(state=3, status=0, clique=1, multinode=False)
    assert found.board is not None
    assert (found.board.persistence, found.board.sram_exceeded, found.board.inforom) == (True, False, 0)
    assert read(child).board is None, "slow things are read only when asked for"


def test_numbers_reach_the_sample(child: NvmlChild, machine: Machine) -> None:
    machine.fields |= {(ONE, "3"): 1 << 40, (ONE, "4"): 2, (ONE, "38"): 7, (ONE, "45"): 5, (ONE, "59"): 3}
    machine.fields |= {(ONE, "29"): 10, (ONE, "30"): 4, (ONE, "31"): 1, (ONE, "270"): 8, (ONE, "271"): 9}
    machine.write()
    found = read(child)
    assert (found.ecc_corrected, found.ecc_uncorrected) == (1 << 40, 2)
    assert (found.link_crc, found.link_recoveries, found.slowed_ns) == (12, 3, 17)
    assert (found.retired_pages, found.retired_pending) == (14, True)


def test_the_child_takes_less_than_35_megabytes(child: NvmlChild) -> None:
    child.ask(OpenLibrary())
    for _ in range(20):
        read(child, ONE, board=True)
        read(child, TWO)
    assert child.pid is not None
    assert status(child.pid, "VmHWM") < RSS_LIMIT_KB


def test_a_lost_gpu_costs_only_itself(child: NvmlChild, machine: Machine) -> None:
    child.ask(OpenLibrary())
    machine.lose(TWO)
    machine.write()
    assert read(child, TWO) == GpuSample(gpu=TWO, failed=15)
    assert read(child, ONE).failed == 0


def test_a_gpu_that_is_lost_at_the_start_is_listed_by_its_return_code(
    child: NvmlChild, machine: Machine
) -> None:
    machine.lose(ONE)
    machine.write()
    assert child.ask(OpenLibrary()) == NvmlLibrary(
        driver="570.172.08", nvml="13.570", gpus=(TWO,), unreadable=(15,)
    )
    assert read(child, ONE).failed == 15


def test_indexes_that_shift_after_a_loss_change_nothing(child: NvmlChild, machine: Machine) -> None:
    machine.fields[TWO, "4"] = 9
    machine.drop(ONE)
    machine.write()
    assert child.ask(OpenLibrary()) == NvmlLibrary(driver="570.172.08", nvml="13.570", gpus=(TWO,))
    assert read(child, TWO).ecc_uncorrected == 9
    assert read(child, ONE) == GpuSample(gpu=ONE, failed=6)


def test_a_call_that_hangs_is_a_missed_deadline_and_the_next_child_answers(
    environment: dict[str, str], machine: Machine
) -> None:
    child = NvmlChild(environment, deadline_seconds=6.0)
    try:
        read(child)
        first = child.pid
        machine.hangs.add((ONE, "nvmlDeviceGetFieldValues"))
        machine.write()
        began = time.monotonic()
        assert child.ask(ReadGpu(ONE, board=False)) == NoAnswer("no answer in 6 s", missed=True)
        assert time.monotonic() - began < 30
        machine.hangs.clear()
        machine.write()
        assert read(child, TWO).failed == 0
        assert child.pid != first
        assert child.stuck == 0, "the child that hung is dead"
    finally:
        child.close()


def test_at_most_one_replacement_runs_beside_a_child_that_cannot_be_ended() -> None:
    assert [may_start(stuck) for stuck in (0, 1, 2)] == [True, True, False]


def test_a_child_that_ends_is_no_missed_deadline(child: NvmlChild) -> None:
    child.ask(OpenLibrary())
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    silence = child.ask(OpenLibrary())
    assert isinstance(silence, NoAnswer)
    assert not silence.missed
    assert isinstance(child.ask(OpenLibrary()), NvmlLibrary)


def test_a_child_does_not_outlive_its_agent(environment: dict[str, str], machine: Machine) -> None:
    machine.hangs.add((ONE, "*"))
    machine.write()
    agent = (
        "from checks.gpu.nvml_process import NvmlChild; from checks.gpu_sample import ReadGpu; import os\n"
        f"child = NvmlChild(os.environ, 60); child._start(); print(child.pid, flush=True)\n"
        f"child.ask(ReadGpu({ONE!r}, False))"
    )
    with subprocess.Popen([sys.executable, "-c", agent], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        time.sleep(0.7)
        process.kill()
    until = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and status_letter(child) != "Z" and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists() or status_letter(child) == "Z"


def status_letter(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.parametrize("code", [4, 9, 18, 999])
def test_a_library_that_cannot_be_opened_says_why(child: NvmlChild, machine: Machine, code: int) -> None:
    machine.errors["*", "nvmlInitWithFlags"] = code
    machine.write()
    assert child.ask(OpenLibrary()) == NvmlRefused("nvmlInitWithFlags", code)


def test_a_node_without_the_library_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    child = NvmlChild({**environment, "LD_LIBRARY_PATH": str(tmp_path)})
    try:
        assert child.ask(OpenLibrary()) == NvmlRefused("nvmlInitWithFlags", 12)
    finally:
        child.close()


def test_a_file_that_is_no_library_says_so(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"not a library")
    child = NvmlChild({**environment, "LD_LIBRARY_PATH": str(tmp_path)})
    try:
        assert child.ask(OpenLibrary()) == NvmlRefused("nvmlInitWithFlags", 12)
    finally:
        child.close()


def test_an_older_library_leaves_out_what_it_does_not_know(
    environment: dict[str, str], machine: Machine, tmp_path: Path
) -> None:
    older = build(
        tmp_path / "older",
        hidden=(
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetMarginTemperature",
            "nvmlDeviceGetSramEccErrorStatus",
            "nvmlDeviceGetGpuFabricInfoV",
            "nvmlDeviceGetMemoryInfo_v2",
        ),
    )
    machine.calls[ONE, "nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x8
    for number in ("194", "230", "269", "270", "271"):
        machine.refused[ONE, number] = 2
    machine.write()
    child = NvmlChild({**environment, "LD_LIBRARY_PATH": str(older)})
    try:
        found = read(child, board=True, memory=True)
    finally:
        child.close()
    assert (found.failed, found.denied, found.reasons) == (0, (), 0x8)
    assert (found.margin, found.fabric, found.recovery_action, found.slowed_ns) == (None, None, None, None)
    assert found.memory_used is None
    assert found.board is not None
    assert found.board.sram_exceeded is None


def test_a_library_with_the_second_layout_of_the_fabric_still_tells_of_it(
    child: NvmlChild, machine: Machine
) -> None:
    machine.calls["-", "nvmlGpuFabricInfoVersion"] = 2
    machine.calls[ONE, "nvmlDeviceGetGpuFabricInfoV"] = 2
    machine.write()
    assert read(child).fabric == FabricSample(state=2, status=0, clique=0, multinode=False)


def test_a_divided_gpu_does_not_tell_of_its_rows_or_links(child: NvmlChild, machine: Machine) -> None:
    machine.calls[ONE, "nvmlDeviceGetMigMode"] = 1
    for number in ("142", "143", "144", "145"):
        machine.refused[ONE, number] = 3
    machine.errors[ONE, "nvmlDeviceGetNvLinkState"] = 3
    machine.write()
    found = read(child, board=True)
    assert (found.remapped_rows, found.remap_failure, found.links, found.denied) == (None, None, None, ())
    assert found.board is not None
    assert found.board.mig is True


def test_a_call_that_is_refused_and_should_not_be_is_told(child: NvmlChild, machine: Machine) -> None:
    machine.errors[ONE, "nvmlDeviceGetMarginTemperature"] = 4
    machine.refused[ONE, "94"] = 16
    machine.write()
    assert sorted(read(child).denied) == [("field 94", 16), ("nvmlDeviceGetMarginTemperature", 4)]


def test_a_corrupted_inforom_and_an_unreadable_power_limit_are_told(
    child: NvmlChild, machine: Machine
) -> None:
    machine.errors[ONE, "nvmlDeviceValidateInforom"] = 14
    machine.errors[ONE, "nvmlDeviceGetEnforcedPowerLimit"] = 999
    machine.write()
    board = read(child, board=True).board
    assert board is not None
    assert (board.inforom, board.power) == (14, 999)


def test_a_link_counts_as_down_only_when_both_ways_to_ask_say_so(child: NvmlChild, machine: Machine) -> None:
    machine.fields |= {(ONE, f"165/{link}" if link else "165"): 1 for link in range(18)}
    machine.fields |= {(ONE, "165/3"): 0, (ONE, "165/4"): 0, (ONE, "165/5"): 2}
    machine.calls[ONE, "nvmlDeviceGetNvLinkState"] = 1 << 3
    machine.write()
    found = read(child)
    assert (found.links, found.links_up) == (18, 17)


def test_a_gpu_with_twelve_links_has_twelve(child: NvmlChild, machine: Machine) -> None:
    machine.fields |= {(ONE, f"165/{link}" if link else "165"): 1 for link in range(12)}
    machine.errors[ONE, "nvmlDeviceGetNvLinkState"] = 2
    machine.write()
    found = read(child)
    assert (found.links, found.links_up) == (12, 12)


def test_the_worst_link_of_nvlink_5_is_told(child: NvmlChild, machine: Machine) -> None:
    machine.fields |= {(ONE, "220"): 0x10F, (ONE, "220/7"): 0x305, (ONE, "215/7"): 4, (ONE, "59"): 1}
    machine.write()
    found = read(child)
    assert found.link_ber == pytest.approx(3e-5)
    assert found.link_recoveries == 5


def test_memory_in_use_is_told_when_asked_for_and_without_what_the_driver_keeps(
    child: NvmlChild, machine: Machine
) -> None:
    machine.calls[ONE, "nvmlDeviceGetMemoryInfo_v2"] = 700 << 20
    machine.write()
    assert read(child, memory=True).memory_used == 700 << 20
    assert read(child).memory_used is None


@pytest.mark.parametrize("code", [3, 4])
def test_a_gpu_that_does_not_tell_of_its_memory_is_no_fault(
    child: NvmlChild, machine: Machine, code: int
) -> None:
    machine.errors[ONE, "nvmlDeviceGetMemoryInfo_v2"] = code
    machine.write()
    found = read(child, memory=True)
    assert (found.memory_used, found.denied) == (None, ())


def test_no_errors_are_a_rate_of_zero() -> None:
    assert [bit_error_rate(each) for each in (0, 0x10F)] == [0.0, pytest.approx(1e-15)]


def test_a_field_that_is_not_supported_is_asked_for_again_only_with_the_board(
    child: NvmlChild, machine: Machine
) -> None:
    machine.refused[ONE, "143"] = 3
    machine.write()
    assert read(child, board=True).remapped_rows is None
    del machine.refused[ONE, "143"]
    machine.write()
    assert read(child).remapped_rows is None
    assert read(child, board=True).remapped_rows == 0


def test_the_agent_does_not_import_pynvml() -> None:
    code = "import checks.agent.agent, checks.registry, sys; print('pynvml' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert told.stdout.strip() == "False"
