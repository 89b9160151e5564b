"""The GPU sampler: rounds over a fake bus and the stand-in library, through the real child."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.check import CheckContext, NodeFacts
from checks.gpu.ecc import SRAM
from checks.gpu.nvml import LISTING_SECONDS
from checks.gpu.nvml_exclusions import excluded_gpus
from checks.gpu.sampler import GpuSampler
from checks.gpu_sample import GpuSnapshot, NvmlRefused
from checks.kernel.parse.event import KernelEvent
from checks.policy import Policy
from tests.checks.gpu.harness import ONE, START, TWO, GpuHarness
from tests.lab.nvml.bus import plug, unload, unplug, use
from tests.lab.nvml.library import Machine

PATIENCE = 30.0
HANGS = "nvmlDeviceGetFieldValues"


class Rounds:
    """Samples minute by minute, as the agent does."""

    def __init__(self, root: Path, environment: dict[str, str], deadline_seconds: float = 20.0) -> None:
        self.root = root
        self.sampler = GpuSampler(environment, deadline_seconds)
        self.uptime = 1000.0
        self.gpus: GpuSnapshot | None = None
        self.excluded: frozenset[str] = frozenset()
        self.suspects: dict[str, float] = {}

    def round(self, minutes: float = 1) -> GpuSnapshot:
        """Sample, and let so many minutes pass."""
        facts = NodeFacts(gpus=self.gpus, excluded_gpus=self.excluded, memory_suspects=self.suspects)
        context = CheckContext(
            root=self.root,
            now=START,
            uptime=self.uptime,
            policy=Policy(),
            facts=facts,
        )
        self.gpus = self.sampler.sample(context)
        self.uptime += minutes * 60
        return self.gpus


@pytest.fixture
def rounds(tmp_path: Path, environment: dict[str, str]) -> Iterator[Rounds]:
    root = tmp_path / "node"
    plug(root, ONE)
    plug(root, TWO)
    rounds = Rounds(root, environment)
    yield rounds
    rounds.sampler.close()


def failed(gpus: GpuSnapshot) -> dict[str, int]:
    return {each.gpu: each.failed for each in gpus.samples}


def test_a_round_hears_all_three_witnesses(rounds: Rounds) -> None:
    found = rounds.round()
    assert [each.gpu for each in found.pci or ()] == [ONE, TWO]
    assert found.driver == (ONE, TWO)
    assert found.library is not None
    assert failed(found) == {ONE: 0, TWO: 0}
    assert all(each.board is not None for each in found.samples)
    assert (found.misses, found.refused, found.rounds) == (0, None, 1)


def test_one_child_serves_all_rounds_and_each_board_is_read_in_a_minute_of_its_own(
    rounds: Rounds, machine: Machine
) -> None:
    rounds.uptime = 1200.0
    boards(rounds.round())
    child = rounds.sampler.child_pid
    machine.fields[ONE, "4"] = 1
    machine.write()
    read: dict[str, list[float]] = {ONE: [], TWO: []}
    for _ in range(30):
        found = rounds.round()
        assert found.samples[0].ecc_uncorrected == 1, "counters are read every minute"
        for gpu, at in boards(found).items():
            if at == found.samples[0].asked_at:
                read[gpu].append(at)
    assert read == {ONE: [1800.0, 2400.0, 3000.0], TWO: [1740.0, 2340.0, 2940.0]}
    assert rounds.sampler.child_pid == child


def boards(gpus: GpuSnapshot) -> dict[str, float]:
    """Return when each GPU's board was read last."""
    return {each.gpu: each.board.read_at for each in gpus.samples if each.board is not None}


def test_a_board_is_kept_between_its_readings(rounds: Rounds, machine: Machine) -> None:
    rounds.round()
    machine.calls[ONE, "nvmlDeviceGetPersistenceMode"] = 0
    machine.write()
    told = []
    for _ in range(11):
        board = rounds.round().samples[0].board
        told.append(board is not None and board.persistence)
    assert told.index(False) > 1
    assert not any(told[told.index(False) :])


def test_the_board_of_a_gpu_with_a_memory_error_is_read_in_the_next_round_once(
    rounds: Rounds, machine: Machine
) -> None:
    rounds.uptime = 1200.0
    harness = GpuHarness(SRAM, uptime=1200.0)
    assert harness.look(rounds.round()) == {}
    machine.calls |= {(gpu, "nvmlDeviceGetSramEccErrorStatus"): 1 for gpu in (ONE, TWO)}
    machine.write()
    assert harness.look(rounds.round()) == {}
    rounds.suspects = {TWO: 1275.0}
    found = rounds.round()
    assert boards(found) == {ONE: 1200.0, TWO: 1320.0}
    assert list(harness.look(found)) == [f"sram-threshold/{TWO}"]
    assert boards(rounds.round()) == {ONE: 1200.0, TWO: 1320.0}
    rounds.suspects = {TWO: 1385.0}
    assert boards(rounds.round()) == {ONE: 1200.0, TWO: 1440.0}


def test_memory_in_use_is_asked_for_only_while_no_program_is_there(rounds: Rounds, machine: Machine) -> None:
    assert used(rounds.round()) == {ONE: None, TWO: None}, "nobody tells of programs"
    use(rounds.root, 0)
    assert used(rounds.round()) == {ONE: 1 << 20, TWO: 1 << 20}
    use(rounds.root, 2)
    machine.hangs.add(("*", "nvmlDeviceGetMemoryInfo_v2"))
    machine.write()
    found = rounds.round()
    assert (used(found), found.misses) == ({ONE: None, TWO: None}, 0), "a call that hangs was not made"


def used(gpus: GpuSnapshot) -> dict[str, int | None]:
    return {each.gpu: each.memory_used for each in gpus.samples}


def test_memory_in_use_is_forgotten_when_a_program_comes_during_the_round(rounds: Rounds) -> None:
    use(rounds.root, 0)
    count = rounds.root / "sys/module/nvidia_uvm/refcnt"
    count.unlink()
    os.mkfifo(count)

    def tell() -> None:
        for handles in ("0", "1"):
            count.write_text(handles)
            time.sleep(0.2)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    assert used(rounds.round()) == {ONE: None, TWO: None}
    teller.join(PATIENCE)
    assert not teller.is_alive(), "the count was read before the round and after it"


def test_memory_in_use_is_forgotten_of_a_gpu_that_was_not_read(rounds: Rounds, machine: Machine) -> None:
    use(rounds.root, 0)
    rounds.round()
    rounds.excluded = frozenset({TWO})
    machine.lose(ONE)
    machine.write()
    assert used(rounds.round()) == {ONE: None, TWO: None}
    rounds.sampler.close()
    machine.errors["*", "nvmlInitWithFlags"] = 9
    machine.write()
    assert used(rounds.round()) == {ONE: None, TWO: None}


def test_a_driver_that_goes_is_told_and_opened_anew(rounds: Rounds, machine: Machine) -> None:
    rounds.round()
    machine.errors["*", HANGS] = 9
    machine.write()
    found = rounds.round()
    assert (found.library, found.refused) == (None, NvmlRefused(HANGS, 9))
    machine.errors.clear()
    machine.write()
    found = rounds.round()
    assert (found.refused, failed(found)) == (None, {ONE: 0, TWO: 0})


@pytest.mark.parametrize(
    "call", ["nvmlInitWithFlags", HANGS, "nvmlDeviceGetMarginTemperature", "nvmlDeviceValidateInforom"]
)
def test_a_timeout_that_the_driver_tells_of_is_a_missed_deadline(
    rounds: Rounds, machine: Machine, call: str
) -> None:
    machine.errors["*", call] = 10
    machine.write()
    found = rounds.round()
    assert (found.misses, found.library, found.refused) == (1, None, None)


def test_a_child_that_was_ended_between_rounds_is_replaced_in_the_next(rounds: Rounds) -> None:
    rounds.round()
    child = rounds.sampler.child_pid
    assert child is not None
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    found = rounds.round()
    assert (found.refused, found.misses, failed(found)) == (None, 0, {ONE: 0, TWO: 0})


def test_a_node_without_gpus_starts_no_child(tmp_path: Path, environment: dict[str, str]) -> None:
    bare = Rounds(tmp_path, environment)
    assert bare.round() == GpuSnapshot()
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    assert bare.round() == GpuSnapshot(pci=())
    assert bare.sampler.child_pid is None


def test_a_gpu_that_is_passed_through_is_not_asked(rounds: Rounds) -> None:
    unplug(rounds.root, TWO)
    plug(rounds.root, TWO, driver="vfio-pci")
    assert failed(rounds.round()) == {ONE: 0}


def test_a_node_whose_gpus_are_all_passed_through_starts_no_child(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    plug(tmp_path, ONE, driver="vfio-pci")
    host = Rounds(tmp_path, environment)
    assert [each.gpu for each in host.round().pci or ()] == [ONE]
    assert host.sampler.child_pid is None


def test_a_lost_gpu_keeps_what_was_known_of_it(rounds: Rounds, machine: Machine) -> None:
    machine.fields[TWO, "4"] = 3
    machine.write()
    rounds.round()
    machine.lose(TWO)
    machine.write()
    found = rounds.round()
    assert failed(found) == {ONE: 0, TWO: 15}
    assert found.samples[1].ecc_uncorrected == 3


@pytest.fixture
def impatient(rounds: Rounds, environment: dict[str, str]) -> Iterator[Rounds]:
    """Rounds over the same node with a shorter deadline, which the test waits for."""
    impatient = Rounds(rounds.root, environment, deadline_seconds=6.0)
    yield impatient
    impatient.sampler.close()


def test_a_missed_deadline_ends_the_round_and_the_next_begins_behind(
    impatient: Rounds, machine: Machine
) -> None:
    rounds = impatient
    rounds.round()
    machine.hangs.add((ONE, HANGS))
    machine.fields |= {(ONE, "4"): 1, (TWO, "4"): 1}
    machine.write()
    found = rounds.round()
    assert (found.misses, found.missed) == (1, f"{ONE}: no answer in 6 s")
    assert [each.ecc_uncorrected for each in found.samples] == [0, 0]
    machine.hangs.clear()
    machine.errors[ONE, HANGS] = 10
    machine.write()
    found = rounds.round()
    assert [each.ecc_uncorrected for each in found.samples] == [0, 1], "the healthy one is read first now"
    assert found.misses == 2


def test_nvml_is_left_alone_for_longer_after_each_bad_round(rounds: Rounds, machine: Machine) -> None:
    rounds.round()
    machine.errors["*", HANGS] = 10
    machine.write()
    asked = [rounds.round().rounds for _ in range(12)]
    assert asked == [2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5]
    machine.errors.clear()
    machine.write()
    while (found := rounds.round()).misses:
        assert rounds.uptime < 4000, "ten minutes are the longest pause"
    assert failed(found) == {ONE: 0, TWO: 0}


def test_a_gpu_that_the_kernel_log_gave_up_is_not_asked(rounds: Rounds, machine: Machine) -> None:
    rounds.round()
    machine.hangs.add((TWO, "*"))
    machine.fields[ONE, "4"] = 1
    machine.write()
    xid = KernelEvent(code="79", subsystem="xid", gpu=TWO)
    rounds.excluded = excluded_gpus([xid, KernelEvent(code="13", subsystem="xid", gpu=ONE)])
    found = rounds.round()
    assert (found.misses, found.excluded) == (0, (TWO,))
    assert [each.ecc_uncorrected for each in found.samples] == [1, 0]
    rounds.excluded = frozenset()
    machine.hangs.clear()
    machine.fields[TWO, "4"] = 7
    machine.write()
    assert [each.ecc_uncorrected for each in rounds.round().samples] == [1, 7]


def test_a_library_that_cannot_be_opened_is_told_and_tried_again(rounds: Rounds, machine: Machine) -> None:
    machine.errors["*", "nvmlInitWithFlags"] = 18
    machine.write()
    assert rounds.round().refused == NvmlRefused("nvmlInitWithFlags", 18)
    assert rounds.sampler.child_pid is None, "a new library is seen by a new process only"
    machine.errors.clear()
    machine.write()
    found = rounds.round()
    assert (found.refused, failed(found)) == (None, {ONE: 0, TWO: 0})


def test_gpus_that_are_all_unknown_though_the_driver_has_them_blame_our_container(
    rounds: Rounds, machine: Machine
) -> None:
    rounds.round()
    machine.errors |= {(gpu, HANGS): 999 for gpu in (ONE, TWO)}
    machine.write()
    found = rounds.round()
    assert found.refused == NvmlRefused("every GPU", 999)
    assert rounds.sampler.child_pid is None


def test_gpus_that_the_driver_got_later_are_found(rounds: Rounds, machine: Machine) -> None:
    machine.drop(TWO)
    machine.write()
    assert failed(rounds.round()) == {ONE: 0, TWO: 6}
    machine.gpus.append(TWO)
    machine.errors[TWO, "nvmlDeviceGetHandleByPciBusId_v2"] = 6
    machine.write()
    assert failed(rounds.round(minutes=10)) == {ONE: 0, TWO: 6}, "an open library does not see it"
    found = rounds.round()
    assert found.library is not None
    assert (found.library.gpus, failed(found)) == ((ONE, TWO), {ONE: 0, TWO: 0})


def test_gpus_that_the_driver_initialises_slowly_are_opened_one_by_one(
    rounds: Rounds, machine: Machine
) -> None:
    machine.slow[ONE, "nvmlDeviceGetHandleByIndex_v2"] = int(LISTING_SECONDS * 1000) + 100
    machine.write()
    found = rounds.round(minutes=11)
    child = rounds.sampler.child_pid
    assert found.library is not None
    assert (found.library.gpus, found.misses, failed(found)) == ((ONE,), 0, {ONE: 0, TWO: 0})
    assert failed(rounds.round()) == {ONE: 0, TWO: 0}
    assert rounds.sampler.child_pid == child, "it is known, though not listed"


def test_an_unloaded_driver_is_no_witness(rounds: Rounds, machine: Machine) -> None:
    unload(rounds.root)
    machine.errors["*", "nvmlInitWithFlags"] = 9
    machine.write()
    found = rounds.round()
    assert (found.driver, found.library, found.refused) == (None, None, NvmlRefused("nvmlInitWithFlags", 9))


def test_another_boot_begins_with_nothing_known(rounds: Rounds) -> None:
    rounds.round()
    rounds.gpus, rounds.uptime = None, 10.0
    assert rounds.round().rounds == 1


def test_the_kernel_log_silences_only_gpus_that_are_lost_or_hang() -> None:
    events = [
        KernelEvent(code="79", subsystem="xid", gpu=ONE),
        KernelEvent(code="119", subsystem="xid", gpu=TWO),
        KernelEvent(code="119", subsystem="xid"),
        KernelEvent(code="48", subsystem="xid", gpu="0000:52:00.0"),
        KernelEvent(code="79", subsystem="sxid", gpu="0000:61:00.0"),
    ]
    assert excluded_gpus(events) == {ONE, TWO}
