"""Memory, processors, drives, clock, services and limits: table 1.3 of the node checks, row by row."""

from pathlib import Path

import pytest

from checks.check import CheckContext, NodeFacts, Observation
from checks.debounce import Instant
from checks.host import boot, clock, cpu, limits, memory, nvme, services
from checks.host.clock import ClockState
from checks.policy import Expected, Policy, Service
from tests.checks.host.harness import WALL, Server, blind, symptoms
from tests.lab import hardware

DIMM = "sys/devices/system/edac/mc/mc1/dimm0"
LABEL = "CPU_SrcID#1_DIMM#0"


def expecting(**expected: object) -> Policy:
    return Policy(expected=Expected(**expected))  # type: ignore[arg-type] # named by each test


def test_memory_that_is_missing_is_found(tmp_path: Path) -> None:
    assert Server(tmp_path, memory.CHECK, expecting(memory_gib=2048)).look(3) == []
    server = Server(tmp_path, memory.CHECK, expecting(memory_gib=2304))
    assert server.look(2) == ["memory-missing - critical/failover"]


def test_memory_is_not_judged_without_an_expectation_and_blind_without_a_kernel(tmp_path: Path) -> None:
    server = Server(tmp_path, memory.CHECK)
    assert server.look(3) == []
    server.remove("proc/meminfo")
    assert "meminfo" in blind(server.glance())


def test_corrected_memory_errors_are_judged_by_the_hour(tmp_path: Path) -> None:
    server = Server(tmp_path, memory.ERRORS)
    server.write(f"{DIMM}/dimm_ce_count", 5_000)
    assert server.look(5) == []
    server.write(f"{DIMM}/dimm_ce_count", 5_101)
    assert server.look() == [f"edac-ce-rate {LABEL} warning/ask"]
    assert server.look_for(80_000) == [f"edac-ce-rate {LABEL} warning/ask"]
    assert server.look_for(12_000) == []


def test_an_uncorrected_memory_error_is_critical_until_the_next_boot(tmp_path: Path) -> None:
    server = Server(tmp_path, memory.ERRORS)
    server.look()
    server.write(f"{DIMM}/dimm_ue_count", 1)
    assert server.look() == [f"edac-ue {LABEL} critical/failover"]
    server.write(f"{DIMM}/dimm_ue_count", 0)
    assert server.look(3000) == [f"edac-ue {LABEL} critical/failover"]


def test_dimms_without_counters_or_labels_are_no_trouble(tmp_path: Path) -> None:
    server = Server(tmp_path, memory.ERRORS)
    server.remove(f"{DIMM}/dimm_label")
    server.remove(f"{DIMM}/dimm_ue_count")
    server.write(f"{DIMM}/dimm_ce_count", "not a number")
    assert server.look(3) == []
    server.remove("sys/devices/system/edac")
    assert server.look(3) == []


@pytest.mark.parametrize(
    ("online", "wrong"), [("0-191", []), ("0-95,97-191", ["cpu-missing - critical/failover"])]
)
def test_a_processor_that_is_offline_is_found(tmp_path: Path, online: str, wrong: list[str]) -> None:
    server = Server(tmp_path, cpu.CHECK, expecting(cpus=192))
    server.write("sys/devices/system/cpu/online", online)
    assert server.look(2) == wrong


def test_processors_that_cannot_be_counted_are_blindness(tmp_path: Path) -> None:
    server = Server(tmp_path, cpu.CHECK, expecting(cpus=192))
    server.write("sys/devices/system/cpu/online", "all of them")
    assert "cpu" in blind(server.glance())


def test_a_drive_that_died_or_left_is_found_by_its_serial_number(tmp_path: Path) -> None:
    server = Server(tmp_path, nvme.CHECK)
    server.look()
    server.write("sys/class/nvme/nvme2/state", "dead")
    server.remove("sys/class/nvme/nvme5")
    assert server.look(2) == [
        "nvme-dead EXAMPLE0002 critical/failover",
        "nvme-missing EXAMPLE0005 critical/failover",
    ]


def test_a_drive_that_came_back_under_another_name_is_well(tmp_path: Path) -> None:
    server = Server(tmp_path, nvme.CHECK)
    server.look()
    (tmp_path / "sys/class/nvme/nvme5").rename(tmp_path / "sys/class/nvme/nvme12")
    assert server.look(5) == []


def test_a_drive_that_resets_is_given_five_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, nvme.CHECK)
    server.look()
    server.write("sys/class/nvme/nvme2/state", "resetting")
    assert server.look(5) == []
    assert server.look() == ["nvme-dead EXAMPLE0002 critical/failover"]


def test_fewer_drives_than_the_pool_has_are_found_from_the_start(tmp_path: Path) -> None:
    server = Server(tmp_path, nvme.CHECK, expecting(nvme=9))
    assert server.look(2) == ["nvme-missing - critical/failover"]


def test_a_drive_that_vanishes_between_list_and_read_is_the_next_looks(tmp_path: Path) -> None:
    server = Server(tmp_path, nvme.CHECK)
    for name in ("state", "serial", "transport"):
        server.remove(f"sys/class/nvme/nvme2/{name}")
    assert server.look(5) == []


def test_the_clock_is_judged_by_the_kernels_word(tmp_path: Path) -> None:
    context = CheckContext(root=tmp_path, now=WALL, uptime=0.0, policy=Policy())
    assert clock.judge(ClockState(synchronised=True, error_seconds=0.004), context) == Observation()
    for state in (ClockState(synchronised=False, error_seconds=0.0), ClockState(True, 2.5)):
        (symptom,) = symptoms(clock.judge(state, context))
        assert (symptom.code, symptom.action) == ("clock", "ask")


def test_a_clock_must_be_wrong_for_ten_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, clock.CHECK)
    wrong = clock.judge(ClockState(synchronised=False, error_seconds=16.0), context_of(server))
    for _ in range(5):
        server.debouncer.record(clock.CHECK, wrong, instant(server))
        server.uptime += 120
    assert server.wrong == []
    server.debouncer.record(clock.CHECK, wrong, instant(server))
    assert server.wrong == ["clock - warning/ask"]


def test_this_kernels_clock_can_be_asked_and_a_tree_of_another_boot_has_none(tmp_path: Path) -> None:
    assert isinstance(clock.read_clock(), ClockState)
    server = Server(tmp_path, clock.CHECK)
    server.write("proc/sys/kernel/random/boot_id", "another")
    assert server.glance() == Observation()


def test_a_service_that_is_down_warns_after_two_minutes_and_is_critical_after_ten(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    assert server.look(3) == []
    server.remove("proc/1377")
    assert server.look_for(100) == []
    assert server.look() == ["service-down kubelet warning/none"]
    assert server.look_for(440) == ["service-down kubelet warning/none"]
    assert server.look_for(20) == ["service-down kubelet critical/reboot"]
    server.write("proc/4711/stat", hardware.stat(4711, "kubelet", started=800_000))
    assert server.look_for(280) == ["service-down kubelet critical/reboot"]
    assert server.look_for(60) == []


def test_more_than_five_restarts_in_half_an_hour_are_critical(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    server.look()
    for restart in range(6):
        assert server.wrong == []
        server.write("proc/1377/stat", hardware.stat(1377, "kubelet", started=800_000 + restart))
        server.look(3)
    assert server.wrong == ["service-restarts kubelet critical/reboot"]
    assert server.look_for(180) == ["service-restarts kubelet critical/reboot"]
    assert server.look_for(60) == []


def restart(server: Server, times: int) -> list[str]:
    """Let slurmd begin anew so many times, a minute and a half apart."""
    for _ in range(times):
        started = int(server.uptime * 100)
        server.write("proc/2044/stat", hardware.stat(2044, "slurmd", started=started))
        server.look_for(80)
    return server.wrong


@pytest.mark.parametrize(
    "policy", [Policy(), Policy(services=(Service(name="slurmd", process="slurmd"),))], ids=["found", "named"]
)
def test_more_than_three_restarts_of_slurmd_in_ten_minutes_are_critical_until_it_is_up_for_ten(
    tmp_path: Path, policy: Policy
) -> None:
    server = Server(tmp_path, services.CHECK, policy)
    assert restart(server, 4) == []
    assert restart(server, 1) == ["service-restarts slurmd critical/reboot"]
    assert server.look_for(480) == ["service-restarts slurmd critical/reboot"]
    assert server.look_for(40) == []


def test_slurmd_may_begin_anew_thrice_in_ten_minutes_again_and_again(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    for _ in range(4):
        assert restart(server, 3) == []
        assert server.look_for(400) == []


def test_a_slurmd_that_was_down_is_well_when_it_is_up_for_ten_minutes(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    restart(server, 1)
    server.remove("proc/2044")
    assert server.look_for(140) == ["service-down slurmd warning/none"]
    restart(server, 1)
    assert server.look_for(480) == ["service-down slurmd warning/none"]
    assert server.look_for(60) == []


def test_the_slurmd_of_a_container_is_its_pods_and_not_judged(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    for started in range(800_000, 800_006):
        server.write("proc/9002/stat", hardware.stat(9002, "slurmd", parent=8991, started=started))
        assert server.look(5) == []
    server.remove("proc/9002")
    assert server.look_for(900) == []


def test_a_process_of_the_same_name_inside_a_pod_is_not_the_service(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    server.look()
    server.remove("proc/1204")
    server.write("proc/9001/stat", hardware.stat(9001, "containerd", parent=8990))
    assert server.look_for(160) == ["service-down containerd warning/none"]


def test_a_service_that_has_never_run_is_missed_only_where_it_is_named(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    assert server.look_for(900) == []
    named = Policy(services=(Service(name="slurmd", process="slurmd"),))
    server = Server(tmp_path, services.CHECK, named)
    assert server.look_for(160) == ["service-down slurmd warning/none"]


def test_without_procfs_the_services_are_unknown(tmp_path: Path) -> None:
    server = Server(tmp_path, services.CHECK)
    server.remove("proc")
    assert "processes" in blind(server.glance())


@pytest.mark.parametrize(
    ("path", "content", "wrong"),
    [
        ("proc/loadavg", "1.0 1.0 1.0 3/3900000 12", ["limits processes warning/ask"]),
        ("proc/sys/fs/file-nr", "900 0 1000", ["limits open files warning/ask"]),
        ("proc/sys/fs/file-nr", "garbage", []),
        ("proc/loadavg", "garbage", []),
    ],
)
def test_what_the_kernel_gives_at_most_is_watched(
    tmp_path: Path, path: str, content: str, wrong: list[str]
) -> None:
    server = Server(tmp_path, limits.CHECK)
    server.write(path, content)
    assert server.look(2) == []
    assert server.look() == wrong


def test_many_dead_processes_are_found_and_stuck_ones_are_not_asked(tmp_path: Path) -> None:
    server = Server(tmp_path, limits.ZOMBIES, Policy())
    for pid in range(20_000, 21_002):
        server.write(f"proc/{pid}/stat", hardware.stat(pid, "a) Z (b", state="Z", parent=77))
    assert server.look(3) == ["zombies zombie processes warning/ask"]


@pytest.mark.parametrize(
    ("known", "wrong"),
    [
        (NodeFacts(previous_boot_id="", repair_ended_previous_boot=None), []),
        (NodeFacts(previous_boot_id="", repair_ended_previous_boot=False), []),
        (NodeFacts(previous_boot_id="a", repair_ended_previous_boot=None), []),
        (NodeFacts(previous_boot_id="a", repair_ended_previous_boot=True), []),
        (NodeFacts(previous_boot_id="a", repair_ended_previous_boot=False), ["boot"]),
    ],
)
def test_a_boot_is_told_unless_it_was_ours_or_nobody_knows(
    tmp_path: Path, known: NodeFacts, wrong: list[str]
) -> None:
    context = CheckContext(root=tmp_path, now=WALL, uptime=60.0, policy=Policy(), facts=known)
    assert [each.code for each in symptoms(boot.CHECK.observe(context))] == wrong


def test_a_boot_is_told_for_an_hour(tmp_path: Path) -> None:
    known = NodeFacts(previous_boot_id="a", repair_ended_previous_boot=False)
    context = CheckContext(root=tmp_path, now=WALL, uptime=3601.0, policy=Policy(), facts=known)
    assert symptoms(boot.CHECK.observe(context)) == ()


def context_of(server: Server) -> CheckContext:
    return CheckContext(root=server.root, now=WALL, uptime=server.uptime, policy=server.policy)


def instant(server: Server) -> Instant:
    return Instant(WALL + server.uptime, server.uptime)
