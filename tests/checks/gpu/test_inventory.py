"""Which GPUs the driver shows in /proc, and what happens when it cannot be asked."""

from pathlib import Path

from checks.gpu.inventory import INFORMATION, InventoryCache, read_inventory
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


def information(uuid: str) -> str:
    return f"Model: NVIDIA H100\nGPU UUID: {uuid}\n"


def test_what_is_known_is_read_again_when_a_gpu_comes_or_goes_and_in_another_boot(tmp_path: Path) -> None:
    show(tmp_path, "0000:1b:00.0", information("GPU-a"))
    known = InventoryCache(tmp_path)
    assert uuids(known, "boot-1") == ["GPU-a"]
    file = tmp_path / INFORMATION / "0000:1b:00.0/information"
    file.write_text(information("GPU-b"))
    assert uuids(known, "boot-1") == ["GPU-a"]
    assert uuids(known, "boot-2") == ["GPU-b"]
    show(tmp_path, "0000:43:00.0", information("GPU-c"))
    assert uuids(known, "boot-2") == ["GPU-b", "GPU-c"]
    file.unlink()
    file.parent.rmdir()
    assert uuids(known, "boot-2") == ["GPU-c"]


def test_what_is_not_known_yet_is_asked_for_again(tmp_path: Path) -> None:
    known = InventoryCache(tmp_path)
    assert known.read("boot-1") == Inventory(gpus=None)
    show(tmp_path, "0000:1b:00.0", information("GPU-????????"))
    assert uuids(known, "boot-1") == [None]
    (tmp_path / INFORMATION / "0000:1b:00.0/information").write_text(information("GPU-a"))
    assert uuids(known, "boot-1") == ["GPU-a"]


def uuids(known: InventoryCache, boot_id: str) -> list[str | None]:
    return [gpu.uuid for gpu in known.read(boot_id).gpus or ()]
