"""GPUs as the PCI bus and the driver's files show them."""

from pathlib import Path

from checks.gpu.pci import PciBus, driver_gpus
from checks.gpu_sample import PciGpu
from tests.checks.gpu.harness import ONE, TWO
from tests.lab.nvml.bus import fall_off, plug, unload, unplug


def test_a_gpu_is_known_by_its_ids_and_its_link(tmp_path: Path) -> None:
    plug(tmp_path, ONE)
    found = PciGpu(gpu=ONE, device="10de:2330", board="10de:16c1", driver="nvidia", width=16, speed=32.0)
    assert PciBus().read(tmp_path) == ((found,), 0)
    assert driver_gpus(tmp_path) == (ONE,)


def test_other_functions_are_no_gpus_and_switches_are_counted(tmp_path: Path) -> None:
    plug(tmp_path, ONE, **{"class": "0x030000"})
    plug(tmp_path, "0000:05:00.0", driver=None, vendor="0x15b3")
    plug(tmp_path, "0000:06:00.0", driver=None, **{"class": "0x040300"})
    plug(tmp_path, "0000:07:00.0", driver=None, **{"class": "0x068000"})
    gpus, switches = PciBus().read(tmp_path)
    assert gpus is not None
    assert ([each.gpu for each in gpus], switches) == ([ONE], 1)


def test_a_gpu_off_the_bus_is_not_alive_and_tells_no_link(tmp_path: Path) -> None:
    plug(tmp_path, ONE)
    fall_off(tmp_path, ONE)
    gpus, _ = PciBus().read(tmp_path)
    assert gpus is not None
    assert (gpus[0].alive, gpus[0].width, gpus[0].speed) == (False, None, None)


def test_a_gpu_that_is_passed_through_is_not_ours(tmp_path: Path) -> None:
    plug(tmp_path, ONE, driver="vfio-pci")
    plug(tmp_path, TWO, driver=None)
    gpus, _ = PciBus().read(tmp_path)
    assert gpus is not None
    assert [each.is_ours for each in gpus] == [False, True]


def test_what_vanishes_between_listing_and_reading_costs_only_itself(tmp_path: Path) -> None:
    bus = PciBus()
    first, second = plug(tmp_path, ONE), plug(tmp_path, TWO)
    assert len(bus.read(tmp_path)[0] or ()) == 2
    for file in first.iterdir():
        file.unlink()
    (second / "current_link_width").unlink()
    (second / "current_link_speed").write_text("Unknown\n")
    (second / "config").unlink()
    gpus, _ = bus.read(tmp_path)
    assert gpus is not None
    assert [(each.gpu, each.width, each.speed, each.alive) for each in gpus] == [(TWO, None, None, True)]
    unplug(tmp_path, ONE)
    assert [each.gpu for each in bus.read(tmp_path)[0] or ()] == [TWO]


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    place = plug(tmp_path, ONE)
    (place / "current_link_speed").write_bytes(b"\xff\xfe\x00")
    (place / "current_link_width").write_bytes("²".encode())
    assert [(each.width, each.speed) for each in PciBus().read(tmp_path)[0] or ()] == [(None, None)]


def test_where_nothing_can_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert PciBus().read(tmp_path) == (None, 0)
    assert driver_gpus(tmp_path) is None
    plug(tmp_path, ONE)
    unload(tmp_path)
    assert driver_gpus(tmp_path) is None
