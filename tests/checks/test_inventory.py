"""Which GPUs the driver shows in /proc, and what happens when it cannot be asked."""

from pathlib import Path

from checks.gpu.inventory import INFORMATION, read_inventory
from checks.report import Gpu, Inventory


def show(root: Path, directory: str, text: str | None) -> None:
    folder = root / INFORMATION / directory
    folder.mkdir(parents=True)
    if text is not None:
        folder.joinpath("information").write_text(text)


def test_a_gpu_is_known_by_address_uuid_and_model(tmp_path: Path) -> None:
    show(
        tmp_path,
        "0000:1b:00.0",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 95\nGPU UUID: \t GPU-7c0de4a1-52b9\n"
        "Video BIOS: \t 96.00\nBus Location: \t 00000000:1B:00.0\n",
    )
    assert read_inventory(tmp_path) == Inventory(
        gpus=(Gpu(address="0000:1b:00.0", uuid="GPU-7c0de4a1-52b9", model="NVIDIA H100 80GB HBM3"),)
    )


def test_what_the_driver_does_not_know_yet_is_unknown(tmp_path: Path) -> None:
    show(
        tmp_path,
        "0000:1b:00.0",
        "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????\nBus Location: 0000:1b:00.0\n",
    )
    assert read_inventory(tmp_path).gpus == (Gpu(address="0000:1b:00.0", model="Unknown"),)


def test_a_file_that_vanishes_costs_only_what_it_would_have_told(tmp_path: Path) -> None:
    show(tmp_path, "0000:1b:00.0", None)
    assert read_inventory(tmp_path).gpus == (Gpu(address="0000:1b:00.0"),)


def test_a_node_without_the_driver_has_an_unknown_inventory(tmp_path: Path) -> None:
    assert read_inventory(tmp_path) == Inventory(gpus=None)


def test_a_driver_without_a_gpu_is_an_empty_inventory(tmp_path: Path) -> None:
    (tmp_path / INFORMATION).mkdir(parents=True)
    assert read_inventory(tmp_path) == Inventory(gpus=())
