"""File systems: read-only, full, not mounted, hanging (table 1.3)."""

import os
import stat
import time
from pathlib import Path

import pytest

from checks.host import critical_devices, disk_free, fs_readonly, mountinfo, mounts
from checks.host.stat_probe import StatProbe
from checks.policy import Expected, HostLimits, Policy
from tests.checks.host.harness import Server, blind, symptoms
from tests.lab import hardware

MOUNTINFO = "proc/1/mountinfo"


def remount(server: Server, path: str, how: str) -> None:
    lines = hardware.MOUNTS.splitlines()
    changed = [f"{line.rpartition(' ')[0]} {how}" if line.split(" ")[4] == path else line for line in lines]
    server.write(MOUNTINFO, "\n".join(changed))


@pytest.mark.parametrize("path", ["/", "/var/lib/kubelet"])
def test_a_file_system_that_became_read_only_is_found_and_clears(tmp_path: Path, path: str) -> None:
    server = Server(tmp_path, fs_readonly.CHECK)
    assert server.look(2) == []
    remount(server, path, "ro,errors=remount-ro")
    assert server.look(2) == [f"fs-readonly {path} critical/reprovision"]
    remount(server, path, "rw")
    assert server.look() == []


def test_a_root_that_is_read_only_by_design_is_well(tmp_path: Path) -> None:
    server = Server(tmp_path, fs_readonly.CHECK)
    remount(server, "/", "ro")
    assert server.look(5) == []


def test_a_read_only_bind_mount_of_a_writable_file_system_is_well(tmp_path: Path) -> None:
    server = Server(tmp_path, fs_readonly.CHECK)
    server.write(MOUNTINFO, hardware.MOUNTS.replace("/var/lib/kubelet rw", "/var/lib/kubelet ro"))
    assert server.look(5) == []


def test_a_scratch_file_system_is_watched_when_the_policy_names_it(tmp_path: Path) -> None:
    policy = Policy(expected=Expected(writable=("/scratch/jobs",)))
    server = Server(tmp_path, fs_readonly.CHECK, policy)
    server.write(MOUNTINFO, hardware.MOUNTS + "40 22 0:50 / /scratch rw - xfs /dev/md1 ro\n")
    assert server.look(2) == ["fs-readonly /scratch critical/reprovision"]


def test_without_a_mountinfo_one_cannot_look(tmp_path: Path) -> None:
    server = Server(tmp_path, fs_readonly.CHECK)
    server.remove(MOUNTINFO)
    server.remove("proc/self/mountinfo")
    assert "mounts" in blind(server.glance())
    server.check = mounts.CHECK
    assert "mounts" in blind(server.glance())


def test_in_a_pod_the_nodes_mounts_are_those_below_its_root() -> None:
    content = (
        "600 500 0:90 / / ro - overlay overlay rw\n"
        "601 600 9:0 / /host ro - ext4 /dev/md0p1 rw\n"
        "602 601 0:51 / /host/data\\040sets rw - nfs4 nas-1:/data rw\n"
        "603 600 0:52 / /hostile rw - tmpfs tmpfs ro\n"
        "not a mount\n"
    )
    found = mountinfo.parse(content, "/host")
    assert {path: each.source for path, each in found.items()} == {
        "/": "/dev/md0p1",
        "/data sets": "nas-1:/data",
    }
    below = mountinfo.holds(found, "/var/lib/kubelet")
    assert below is not None
    assert below.path == "/"


def test_a_full_file_system_is_found_by_what_is_free(tmp_path: Path) -> None:
    free = 100 * os.statvfs(tmp_path).f_bavail / os.statvfs(tmp_path).f_blocks
    for limit, clear, wrong in (
        (free / 2, free / 2, []),
        (min(100, free + 1), 100, ["disk-free / warning/ask"]),
    ):
        host = HostLimits(disk_free_percent=limit, disk_clear_percent=clear, disk_free_mb=0)
        assert Server(tmp_path, disk_free.CHECK, Policy(host=host)).look(2) == wrong


def test_a_disk_between_the_two_thresholds_keeps_its_finding_only(tmp_path: Path) -> None:
    host = HostLimits(disk_free_percent=0.001, disk_clear_percent=100, disk_free_mb=0)
    server = Server(tmp_path, disk_free.CHECK, Policy(host=host))
    assert [each.only_holds for each in symptoms(server.glance())] == [True]
    assert server.look(5) == []


def test_disks_that_cannot_be_asked_are_blindness(tmp_path: Path) -> None:
    server = Server(tmp_path, disk_free.CHECK, Policy(expected=Expected(disks=("/nowhere",))))
    assert "/nowhere" in blind(server.glance())


def test_an_expected_mount_that_is_not_there_is_found(tmp_path: Path) -> None:
    server = Server(tmp_path, mounts.CHECK, Policy(expected=Expected(mounts=("/data", "/var/lib/kubelet"))))
    assert server.look(2) == ["mount-missing /data warning/ask"]


@pytest.fixture
def dead_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `stat` that never comes back from a path below `nas-1`."""
    program = tmp_path / "bin/stat"
    program.parent.mkdir()
    asked = f'echo "$*" >>{tmp_path}/asked'
    program.write_text(f'#!/bin/sh\n{asked}\ncase "$*" in */nas-1/*) exec sleep 60;; esac\nexit 1\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path


def test_mounts_of_one_dead_server_are_one_finding_that_asks_for_nothing(dead_server: Path) -> None:
    policy = Policy(host=HostLimits(mount_seconds=1.0, mount_polls=2))
    server = Server(dead_server / "root", mounts.CHECK, policy)
    nfs = "".join(
        f"{number} 22 0:{number} / /{path} rw - nfs4 {source}:/{path} rw\n"
        for number, (path, source) in enumerate(
            {"nas-1/home": "nas-1", "nas-1/data": "nas-1", "nas-2/models": "nas-2"}.items(), 60
        )
    )
    server.write(MOUNTINFO, hardware.MOUNTS + nfs)
    assert server.look() == []
    assert server.look() == ["mount-hangs nas-1 warning/none"]
    server.write(MOUNTINFO, hardware.MOUNTS)
    assert server.look(2) == []


def test_a_child_that_hangs_costs_its_deadline_and_is_ended(dead_server: Path) -> None:
    probe = StatProbe()
    began = time.monotonic()
    paths = {"a": Path("/nas-1/a"), "b": Path("/nas-2/b")}
    for _ in range(2):
        assert probe.answers(paths, 1.0) == {"a": False, "b": True}
    assert time.monotonic() - began < 30, "the child itself hangs for a minute"
    started = (dead_server / "asked").read_text().split()
    assert started.count("/nas-2/b") == 2
    assert 1 <= started.count("/nas-1/a") <= 2, "again only once the first child has ended"


def on(root: Path, system: str, kubelet: str | None = None) -> frozenset[str]:
    """Return the critical devices where root and kubelet are mounted so (`NUMBER SOURCE`)."""
    lines = {"/": system, "/scratch": "259:9 /dev/nvme9n1"} | (
        {"/var/lib/kubelet": kubelet} if kubelet else {}
    )
    rows = (
        f"22 1 {how.split(' ')[0]} / {path} rw - ext4 {how.split(' ')[1]} rw\n" for path, how in lines.items()
    )
    hardware.write(root, MOUNTINFO, "".join(rows))
    return critical_devices.devices(root)


def number(root: Path, number: str, name: str) -> None:
    """Let sysfs say which device has this number."""
    place = root / "sys/dev/block"
    place.mkdir(parents=True, exist_ok=True)
    (place / number).symlink_to(f"../../devices/pci0000:00/0000:00:1f.2/block/{name}")


def test_the_nodes_own_devices_are_known_by_number(tmp_path: Path) -> None:
    number(tmp_path, "8:1", "sda1")
    number(tmp_path, "253:0", "dm-0")
    assert on(tmp_path, "8:1 /dev/root", "253:0 /dev/mapper/vg-kubelet") == {"sda1", "dm-0"}
    assert on(tmp_path, "8:1 /dev/root") == {"sda1"}


def test_the_nodes_own_devices_are_known_by_name_where_sysfs_has_no_numbers(tmp_path: Path) -> None:
    hardware.write(tmp_path, "sys/class/block/dm-0/dm/name", "vg-home\n")
    hardware.write(tmp_path, "sys/class/block/dm-3/dm/name", "vg-kubelet\n")
    assert on(tmp_path, "259:2 /dev/nvme0n1p2", "253:3 /dev/mapper/vg-kubelet") == {"nvme0n1p2", "dm-3"}


def test_a_node_without_devices_of_its_own_has_none(tmp_path: Path) -> None:
    assert on(tmp_path, "0:31 overlay", "0:40 /dev/mapper/gone") == frozenset()
    hardware.write(tmp_path, MOUNTINFO, "nonsense\n")
    assert critical_devices.devices(tmp_path) == frozenset()
