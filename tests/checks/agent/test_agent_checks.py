"""The agent with its checks, in this process, on a clock that the test moves, with a real HTTP server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.agent.agent import POOL_SECONDS
from tests.checks.agent.harness import BOOT, XID, Bot
from tests.checks.agent.stepped import REPORT_SECONDS, STARTED, SteppedNode
from tests.lab import hardware

DIMM = "sys/devices/system/edac/mc/mc0/dimm1"
NEXT_BOOT = "00000000-2222-4222-8222-333333333333"


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[SteppedNode]:
    node = SteppedNode(tmp_path, bot)
    yield node
    node.stop()


def test_each_line_is_reported_within_a_second(bot: Bot, node: SteppedNode) -> None:
    node.start()
    for count in range(1, 11):
        node.log(XID.format(code=79))
        node.step()
        node.pass_time(1.0)
        assert [(each["code"], each.get("count", 1)) for each in bot.reports[-1]["findings"]] == [
            ("79", count)
        ]


def test_another_boot_under_a_running_agent_checks_everything_again(bot: Bot, node: SteppedNode) -> None:
    bot.says = {"pool": "h100", "reset_boots": [BOOT]}
    node.policy({"expected": {"cpus": 256}, "disabled": ["disk-free"]})
    node.start()
    node.log(XID.format(code=79))
    node.pass_time(600)
    node.pass_time(60)
    assert node.wrong == ["79", "cpu-missing"]
    node.boot(NEXT_BOOT)
    (node.root / "dev/kmsg").write_text("")
    node.step()
    assert node.report()["boot_id"] == NEXT_BOOT
    assert node.wrong == []
    # The first poll was right after the boot; every check of a minute has its second one within the next.
    node.pass_time(60)
    assert node.wrong == ["cpu-missing"]


def test_lost_records_are_reported_for_an_hour(bot: Bot, node: SteppedNode) -> None:
    bot.says = {"pool": "h100", "reset_boots": []}
    node.policy({"disabled": ["disk-free"]})
    node.start()
    node.log("first")
    node.records += 41
    node.log("later")
    node.pass_time(1)
    assert node.wrong == ["log-lost"]
    node.pass_time(3500)
    assert node.wrong == ["log-lost"]
    node.pass_time(100)
    assert node.wrong == []


def test_a_healthy_server_has_no_findings_however_long_one_looks(bot: Bot, node: SteppedNode) -> None:
    # The disk is this machine's own, and may well be full.
    bot.says = {"pool": "h100", "reset_boots": []}
    node.policy({"disabled": ["disk-free"]})
    node.start()
    for _ in range(5):
        node.pass_time(60)
    for _ in range(3):
        node.pass_time(600)
    assert node.wrong == []


def test_what_a_check_finds_is_reported_and_survives_a_restart_of_the_agent(
    bot: Bot, node: SteppedNode
) -> None:
    node.start()
    assert node.wrong == []
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "1\n")
    node.pass_time(60)
    assert node.wrong == ["edac-ue"]
    first = bot.reports[-1]["findings"][0]
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "0\n")
    node.stop()
    node.start()
    node.pass_time(60)
    assert node.wrong == ["edac-ue"]
    assert bot.reports[-1]["findings"] == [first]
    assert (first["check"], first["severity"], first["action"]) == ("memory-errors", "critical", "failover")


def test_a_policy_takes_effect_without_a_restart_once_the_bot_names_the_pool(
    bot: Bot, node: SteppedNode
) -> None:
    node.policy({"expected": {"cpus": 256}})
    node.start()
    node.pass_time(60)
    node.pass_time(60)
    assert node.wrong == []
    bot.says = {"pool": "h100"}
    node.pass_time(60)
    for _ in range(3):
        node.pass_time(60)
    assert node.wrong == ["cpu-missing"]
    node.policy({"expected": {"cpus": 256}, "disabled": ["cpu"]})
    node.pass_time(60)
    node.pass_time(60)
    assert node.wrong == []


def test_a_wrong_policy_is_a_blind_spot_and_the_last_good_one_stays(bot: Bot, node: SteppedNode) -> None:
    bot.says = {"pool": "h100"}
    node.policy({"expected": {"cpus": 256}})
    node.start()
    for _ in range(3):
        node.pass_time(60)
    node.policy('{"expected": {"cpus": "many"}}')
    node.pass_time(60)
    assert node.wrong == ["cpu-missing", "policy-invalid"]
    (spot,) = bot.reports[-1]["blind_spots"]
    assert spot["evidence"].startswith("h100.json: expected.cpus: Expected")
    node.policy({})
    for _ in range(3):
        node.pass_time(60)
    assert node.wrong == []


@pytest.mark.parametrize(("ours", "wrong"), [([], ["boot"]), ([BOOT], [])])
def test_a_boot_is_told_unless_a_repair_of_ours_made_it(
    bot: Bot, node: SteppedNode, ours: list[str], wrong: list[str]
) -> None:
    node.start()
    node.stop()
    bot.says = {"pool": "h100", "reset_boots": ours}
    node.reboot(NEXT_BOOT)
    node.start()
    for _ in range(3):
        node.pass_time(60)
    assert node.wrong == wrong


def test_a_check_that_cannot_look_is_a_blind_spot(bot: Bot, node: SteppedNode) -> None:
    node.start()
    (node.root / "proc/1/mountinfo").unlink()
    (node.root / "proc/self/mountinfo").unlink()
    for _ in range(4):
        node.pass_time(60)
    assert node.wrong == ["check-blind", "check-blind"]
    assert {each["device"] for each in bot.reports[-1]["blind_spots"]} == {"fs-readonly", "mounts"}


def test_a_wall_clock_that_jumps_raises_and_clears_nothing(bot: Bot, node: SteppedNode) -> None:
    bot.says = {"pool": "h100"}
    node.policy({"disabled": ["disk-free"]})
    node.start()
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "1\n")
    node.pass_time(60)
    for jump in (86_400.0, -400_000.0, 3e7):
        node.runtime.began += jump
        node.pass_time(60)
        assert node.wrong == ["edac-ue"]


def test_the_kernel_log_tells_the_agent_which_board_a_gpu_is(bot: Bot, node: SteppedNode) -> None:
    hardware.write(node.root, "proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: NVIDIA H100\n")
    uuid = "GPU-f1906b9b-557a-e961-045c-9fe4be3ce012"
    for at, text in ((50, f"GPU at PCI:0000:1b:00: {uuid}"), (51, "GPU Board Serial Number: 1653923026510")):
        node.log(f"NVRM: {text}", at)
    node.start()
    node.pass_time(REPORT_SECONDS)
    assert bot.reports[-1]["inventory"]["gpus"] == [
        {"address": "0000:1b:00.0", "uuid": uuid, "model": "NVIDIA H100", "serial": "1653923026510"}
    ]


def test_a_link_that_failed_three_times_is_told_so_when_all_lines_are_read_at_once(
    bot: Bot, node: SteppedNode
) -> None:
    registers = ", ".join(["0x00000000"] * 4 + ["0x00040000"] + ["0x00000000"] * 2)
    for at in (100, 1500, 3000):
        node.log(f"NVRM: Xid (PCI:0000:1b:00): 74, pid=1, NVLink: fatal error on link 5({registers})", at)
    node.start()
    (found,) = bot.reports[-1]["findings"]
    assert (found["count"], found["action"]) == (3, "failover")


@pytest.mark.parametrize(
    ("device", "verdict"),
    [("md0p1", "critical/reprovision"), ("nvme0n1", "critical/reprovision"), ("sdc", "warning/ask")],
)
def test_an_ext4_error_on_the_nodes_own_device_asks_for_a_new_image(
    bot: Bot, node: SteppedNode, device: str, verdict: str
) -> None:
    node.start()
    text = f"EXT4-fs error (device {device}): ext4_find_entry:1463: inode #2: comm job: reading directory"
    node.log(text)
    (found,) = (each for each in node.report()["findings"] if each["code"] == "ext4-error")
    assert f"{found['severity']}/{found['action']}" == verdict


def test_a_new_agent_looks_once_it_was_told_what_is_switched_off(bot: Bot, node: SteppedNode) -> None:
    bot.status = 503
    node.policy({"disabled": ["memory-errors"]})
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "1\n")
    node.begin()
    assert bot.tokens
    bot.says, bot.status = {"pool": "h100"}, 202
    node.pass_time(30)
    assert node.wrong == []
    assert [report for report in bot.reports if report["findings"]] == []


def test_a_new_agent_checks_as_soon_as_the_bot_has_answered(bot: Bot, node: SteppedNode) -> None:
    bot.says = {"pool": "h100"}
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "1\n")
    node.start()
    assert node.wrong == ["edac-ue"]
    assert node.runtime.uptime() < STARTED + POOL_SECONDS


def test_a_new_agent_does_not_wait_for_ever_to_be_told(bot: Bot, node: SteppedNode) -> None:
    bot.status = 503
    hardware.write(node.root, f"{DIMM}/dimm_ue_count", "1\n")
    node.begin()
    node.pass_time(POOL_SECONDS)
    node.pass_time(60)
    bot.status = 202
    node.pass_time(REPORT_SECONDS)
    assert node.wrong == ["edac-ue"]


def test_an_agent_that_starts_again_does_not_count_its_first_runs_as_polls(
    bot: Bot, node: SteppedNode
) -> None:
    bot.says = {"pool": "h100"}
    node.policy({"expected": {"cpus": 256}})
    for _ in range(4):
        node.start()
        node.pass_time(5)
        node.stop()
    node.start()
    assert node.wrong == []
