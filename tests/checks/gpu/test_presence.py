"""presence: three witnesses, and what the cluster's repository expects."""

import msgspec
import pytest

from checks.finding import Action, Severity
from checks.gpu.presence import CHECK
from checks.gpu_sample import GpuSnapshot, NvmlLibrary
from checks.policy import Expected, Policy
from tests.checks.gpu.harness import ONE, TWO, GpuHarness, bus, gpus, sample

THREE = "0000:52:00.0"
WELL = gpus(sample(ONE), sample(TWO), sample(THREE))
LOST = gpus(sample(ONE), sample(TWO, failed=15), sample(THREE))


def expecting(**known: object) -> Policy:
    return Policy(expected=msgspec.convert(known, Expected, strict=False))


def test_witnesses_that_agree_are_no_finding() -> None:
    assert GpuHarness(CHECK).look(WELL, 5) == {}


@pytest.mark.parametrize("code", [6, 15, 28, 999])
def test_a_gpu_that_nvml_has_lost_is_missing_after_two_looks(code: int) -> None:
    harness = GpuHarness(CHECK)
    lost = gpus(sample(ONE), sample(TWO, failed=code), sample(THREE))
    assert harness.look(lost) == {}
    found = harness.look(lost)[f"gpu-missing/{TWO}"]
    assert (found.severity, found.action) == (Severity.CRITICAL, Action.FAILOVER)
    assert found.evidence == "not shown by NVML"
    assert harness.look(WELL, 1) != {}
    assert harness.look(WELL, 1) == {}


def test_a_gpu_that_needs_a_reset_or_was_asked_wrongly_is_not_missing() -> None:
    for code in (4, 16, 17):
        assert GpuHarness(CHECK).look(gpus(sample(ONE), sample(TWO, failed=code)), 5) == {}


def test_a_gpu_without_the_driver_is_missing() -> None:
    without = msgspec.structs.replace(WELL, driver=(ONE, THREE))
    assert GpuHarness(CHECK).look(without, 2)[f"gpu-missing/{TWO}"].evidence == "not shown by the driver"


def test_a_gpu_that_the_bus_does_not_show_is_missing() -> None:
    without = msgspec.structs.replace(WELL, pci=(bus(ONE), bus(THREE)))
    assert GpuHarness(CHECK).look(without, 2)[f"gpu-missing/{TWO}"].evidence == "not shown by the PCI bus"


def test_a_gpu_off_the_bus_needs_no_second_look() -> None:
    gone = gpus(sample(ONE), sample(TWO), pci=(bus(ONE), bus(TWO, alive=False)))
    found = GpuHarness(CHECK, uptime=10.0).look(gone)
    assert list(found) == [f"gpu-off-bus/{TWO}"]
    assert found[f"gpu-off-bus/{TWO}"].action is Action.FAILOVER


def test_what_driver_and_nvml_do_not_show_yet_is_not_judged_in_the_first_five_minutes() -> None:
    harness = GpuHarness(CHECK, expecting(gpus=8), uptime=60.0)
    assert list(harness.look(LOST, 4)) == ["gpu-count"], "the bus shows everything from the start"
    assert sorted(harness.look(LOST, 2)) == ["gpu-count", f"gpu-missing/{TWO}"]
    assert GpuHarness(CHECK, uptime=60.0).look(gpus(sample(ONE, failed=6), sample(TWO, failed=6)), 4) == {}


def test_a_gpu_that_is_lost_to_all_is_one_finding() -> None:
    gone = gpus(sample(ONE), sample(TWO, failed=15), pci=(bus(ONE), bus(TWO, alive=False)), driver=(ONE,))
    assert list(GpuHarness(CHECK).look(gone, 3)) == [f"gpu-off-bus/{TWO}"]


def test_all_gpus_lost_at_once_is_the_readers_trouble_first() -> None:
    none = gpus(sample(ONE, failed=6), sample(TWO, failed=6))
    found = GpuHarness(CHECK).look(none, 3)
    assert [(each.code, each.severity) for each in found.values()] == [("presence-all", Severity.WARNING)]


def test_gpus_that_are_all_unknown_to_nvml_blame_no_gpu() -> None:
    assert GpuHarness(CHECK).look(gpus(sample(ONE, failed=999), sample(TWO, failed=999)), 3) == {}


def test_a_witness_that_was_not_asked_says_nothing() -> None:
    unasked = GpuSnapshot(pci=(bus(ONE),), driver=(ONE,))
    assert GpuHarness(CHECK).look(unasked, 3) == {}
    unloaded = msgspec.structs.replace(WELL, driver=None)
    assert GpuHarness(CHECK).look(unloaded, 3) == {}


def test_a_loss_stands_while_nvml_does_not_answer() -> None:
    harness = GpuHarness(CHECK)
    harness.look(LOST, 2)
    assert harness.look(msgspec.structs.replace(LOST, library=None, misses=1), 5) != {}


def test_a_gpu_that_nvml_never_listed_is_missing() -> None:
    listed = NvmlLibrary(driver="570", nvml="13", gpus=(ONE,), unreadable=(15,))
    assert f"gpu-missing/{TWO}" in GpuHarness(CHECK).look(
        gpus(sample(ONE), sample(TWO, failed=15), library=listed), 2
    )


def test_a_gpu_that_is_left_alone_is_not_missing_for_it() -> None:
    alone = gpus(sample(ONE), pci=(bus(ONE), bus(TWO)), driver=(ONE, TWO), excluded=(TWO,))
    assert GpuHarness(CHECK).look(alone, 3) == {}


def test_fewer_gpus_than_expected_are_critical_and_more_are_drift() -> None:
    fewer = GpuHarness(CHECK, expecting(gpus=8)).look(WELL, 2)["gpu-count"]
    assert (fewer.severity, fewer.action) == (Severity.CRITICAL, Action.FAILOVER)
    more = GpuHarness(CHECK, expecting(gpus=2)).look(WELL, 2)["gpu-count"]
    assert (more.severity, more.action) == (Severity.WARNING, Action.ASK)
    assert GpuHarness(CHECK, expecting(gpus=3)).look(WELL, 2) == {}


def test_one_of_two_gpus_missing_and_the_count_wrong_are_not_everything() -> None:
    pair = gpus(sample(ONE), sample(TWO, failed=15))
    assert sorted(GpuHarness(CHECK, expecting(gpus=8)).look(pair, 2)) == ["gpu-count", f"gpu-missing/{TWO}"]


def test_a_bus_without_gpus_lacks_those_that_are_expected() -> None:
    assert "gpu-count" in GpuHarness(CHECK, expecting(gpus=8)).look(GpuSnapshot(pci=()), 2)
    assert GpuHarness(CHECK).look(GpuSnapshot(pci=()), 2) == {}


def test_a_gpu_of_another_kind_is_drift_by_its_ids() -> None:
    other = gpus(sample(ONE), sample(TWO), pci=(bus(ONE), bus(TWO, device="10de:2331")))
    found = GpuHarness(CHECK, expecting(gpuDevice="10de:2330", gpuBoard="10de:16c1")).look(other, 2)
    assert list(found) == [f"gpu-model/{TWO}"]
    assert found[f"gpu-model/{TWO}"].evidence == "10de:2331, not 10de:2330"


def test_a_guests_gpu_is_not_counted() -> None:
    mixed = gpus(sample(ONE), pci=(bus(ONE), bus(TWO, driver="vfio-pci")), driver=(ONE,))
    assert GpuHarness(CHECK).look(mixed, 3) == {}


def test_a_bus_that_cannot_be_read_is_blindness() -> None:
    harness = GpuHarness(CHECK)
    assert harness.look(GpuSnapshot(), 3) == {}
    assert harness.blind() == ["the PCI bus cannot be read"]
