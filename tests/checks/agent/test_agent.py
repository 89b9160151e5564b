"""The agent as a process, against a real HTTP server that speaks as the bot does."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.agent.harness import BOOT, XID, Bot, Node, wait_for


@pytest.fixture
def node(tmp_path: Path, bot: Bot) -> Iterator[Node]:
    node = Node(tmp_path, bot)
    yield node
    if node.process is not None:
        node.kill()


def test_a_line_is_reported_long_before_the_next_report_is_due(bot: Bot, node: Node) -> None:
    node.environment["CLUSTERWRIGHT_AGENT__REPORT_INTERVAL_SECONDS"] = "600"
    node.start()
    wait_for(lambda: bot.reports)
    node.write(XID.format(code=79))
    wait_for(lambda: bot.counts() == {"79": 1})
    report = bot.reports[-1]
    assert (report["node"], report["boot_id"]) == ("gpu-01", BOOT)
    assert report["findings"][0] | {"first_seen": 0, "last_seen": 0, "summary": ""} == {
        "check": "xid",
        "subsystem": "xid",
        "code": "79",
        "severity": "critical",
        "action": "failover",
        "gpu": "0000:3d:00.0",
        "first_seen": 0,
        "last_seen": 0,
        "summary": "",
        "evidence": XID.format(code=79),
    }


def test_lines_before_the_agents_start_count_with_their_own_time(bot: Bot, node: Node) -> None:
    hour_ago = int((time.monotonic() - 30) * 1e6)
    node.kmsg.write_text(f"4,0,{hour_ago},c;{XID.format(code=79)}\n")
    node.start()
    wait_for(lambda: bot.counts() == {"79": 1})
    assert bot.reports[-1]["findings"][0]["first_seen"] == pytest.approx(time.time() - 30, abs=5)


def test_a_flood_is_few_reports_and_no_lost_count(bot: Bot, node: Node) -> None:
    node.start()
    wait_for(lambda: bot.reports)
    for _ in range(100):
        node.write(*[XID.format(code=31)] * 100)
    wait_for(lambda: bot.counts() == {"31": 10_000})
    assert len(bot.reports) < 20


def test_the_state_is_reported_again_without_a_change(bot: Bot, node: Node) -> None:
    node.environment["CLUSTERWRIGHT_AGENT__REPORT_INTERVAL_SECONDS"] = "1"
    node.start()
    wait_for(lambda: len(bot.reports) >= 3)
    sequences = [report["sequence"] for report in bot.reports]
    assert sequences == list(range(1, len(sequences) + 1))


def test_a_bot_that_was_away_gets_everything_when_it_is_back(bot: Bot, node: Node) -> None:
    bot.stop()
    node.start()
    wait_for(lambda: "report not accepted" in node.log())
    node.write(XID.format(code=79))
    bot.start()
    wait_for(lambda: bot.counts() == {"79": 1})


def test_a_killed_agent_neither_loses_nor_doubles_counts(bot: Bot, node: Node) -> None:
    chance = random.Random(3)
    written = 0
    for _ in range(6):
        node.start()
        for _ in range(chance.randrange(1, 8)):
            lines = chance.randrange(1, 40)
            node.write(*[XID.format(code=31)] * lines)
            written += lines
            time.sleep(chance.random() / 5)
        node.kill()
    node.write(XID.format(code=31))
    node.start()
    wait_for(lambda: bot.counts() == {"31": written + 1})
    sequences = [report["sequence"] for report in bot.reports]
    assert sequences == sorted(set(sequences))


def test_another_boot_starts_anew(bot: Bot, node: Node) -> None:
    node.write(XID.format(code=79))
    node.start()
    wait_for(lambda: bot.counts() == {"79": 1})
    node.kill()
    node.kmsg.unlink()
    node.sequence = 0
    node.write("Linux version 6.8.0-60-generic")
    node.boot("second")
    node.start()
    wait_for(lambda: bot.reports[-1]["boot_id"] == "second")
    assert bot.counts() == {}
    assert bot.reports[-1]["sequence"] == 1


def test_a_boot_id_that_changes_under_a_running_agent_starts_anew(bot: Bot, node: Node) -> None:
    node.write(XID.format(code=79))
    node.start()
    wait_for(lambda: bot.counts() == {"79": 1})
    node.kmsg.write_bytes(b"")
    node.boot("second")
    wait_for(lambda: bot.reports[-1]["boot_id"] == "second" and bot.counts() == {})


def test_the_drivers_all_clear_ends_the_findings_of_that_gpu_only(bot: Bot, node: Node) -> None:
    other = "NVRM: Xid (PCI:0000:9d:00): 95, pid=1, name=job"
    clear = "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    node.write(XID.format(code=48), other)
    node.start()
    wait_for(lambda: bot.counts() == {"48": 1, "95": 1})
    node.write(XID.format(code=clear))
    wait_for(lambda: bot.counts() == {"95": 1})


def test_a_rotated_token_is_taken_up(bot: Bot, node: Node) -> None:
    bot.answers = {"token-1": 401}
    node.start()
    wait_for(lambda: bot.tokens.count("token-1") >= 2)
    assert not bot.reports
    node.token_file.write_text("token-2")
    wait_for(lambda: bot.reports)
    assert node.log().count("401") == 1
    assert "audience clusterwright-bot" in node.log()


def test_a_missing_token_is_logged_and_corrected_without_a_restart(bot: Bot, node: Node) -> None:
    node.token_file.unlink()
    node.start()
    wait_for(lambda: "cannot prepare a report" in node.log())
    node.token_file.write_text("token-1")
    wait_for(lambda: bot.reports)


def test_a_bot_that_knows_a_newer_report_is_overtaken(bot: Bot, node: Node) -> None:
    bot.status = 409
    node.start()
    wait_for(lambda: bot.tokens)
    bot.status = 202
    wait_for(lambda: bot.reports)
    assert bot.reports[0]["sequence"] > 1_000_000_000


def test_an_agent_that_lost_its_number_goes_on_behind_what_the_bot_holds(bot: Bot, node: Node) -> None:
    bot.status, bot.refuses = 409, {"held": 4711}
    node.start()
    wait_for(lambda: bot.tokens)
    bot.status = 202
    wait_for(lambda: bot.reports)
    assert 4711 < bot.reports[0]["sequence"] < 5000


def test_only_a_bot_that_says_so_is_sent_reports_by_key(bot: Bot, node: Node) -> None:
    bot.says = {"holds": True}
    node.start()
    node.write(XID.format(code=79))
    wait_for(lambda: bot.counts() == {"79": 1})
    number = bot.reports[-1]["sequence"]
    node.write(XID.format(code=48))
    small = wait_for(lambda: next((each for each in bot.reports if each["sequence"] > number), None))
    assert (small["base"], small["unchanged"]) == (number, ["xid/79/0000:3d:00.0"])
    assert [each["code"] for each in small["findings"]] == ["48"]
    assert "inventory" not in small


def test_a_bot_that_does_not_hold_the_last_report_gets_everything_at_once(bot: Bot, node: Node) -> None:
    bot.says, bot.refuses = {"holds": True}, {"resend": True}
    node.start()
    node.write(XID.format(code=79))
    wait_for(lambda: bot.counts() == {"79": 1})
    bot.resends = 1
    node.write(XID.format(code=48))
    wait_for(lambda: bot.counts() == {"79": 1, "48": 1})
    assert bot.resends == 0
    assert "base" not in bot.reports[-1]
    assert "not accepted" not in node.log()


def test_a_log_that_is_not_there_is_a_blind_spot_until_it_is(bot: Bot, node: Node) -> None:
    node.kmsg.unlink()
    node.start()
    wait_for(lambda: bot.blind_spots() == {"log-blind": 1})
    assert bot.reports[-1]["blind_spots"][0]["severity"] == "warning"
    node.write(XID.format(code=79))
    wait_for(lambda: bot.blind_spots() == {} and bot.counts() == {"79": 1})


def test_lost_records_are_a_blind_spot_that_says_how_many(bot: Bot, node: Node) -> None:
    node.start()
    node.write("first")
    node.sequence += 41
    node.write(XID.format(code=79))
    wait_for(lambda: bot.blind_spots() == {"log-lost": 41} and bot.counts() == {"79": 1})


def test_a_record_of_user_space_is_never_a_finding(bot: Bot, node: Node) -> None:
    node.write(XID.format(code=79), XID.format(code=31))
    kernel, *others = node.kmsg.read_text().split("\n4,")
    node.kmsg.write_text("\n4,".join([kernel.replace("4,", "12,", 1), *others]))
    node.start()
    wait_for(lambda: bot.counts() == {"31": 1})


def test_the_inventory_is_what_the_driver_shows(bot: Bot, node: Node) -> None:
    gpu = node.root / "proc/driver/nvidia/gpus/0000:1b:00.0"
    gpu.mkdir(parents=True)
    gpu.joinpath("information").write_text(
        "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-7c0de4a1\nBus Location: \t 0000:1b:00.0\n"
    )
    node.start()
    wait_for(lambda: bot.reports)
    assert bot.reports[-1]["inventory"] == {
        "gpus": [{"address": "0000:1b:00.0", "uuid": "GPU-7c0de4a1", "model": "NVIDIA H100 80GB HBM3"}]
    }


def test_sigterm_ends_the_agent_cleanly(bot: Bot, node: Node) -> None:
    node.start()
    wait_for(lambda: bot.reports)
    assert node.end() == 0
    assert "Traceback" not in node.log()


def test_a_state_file_that_cannot_be_read_is_said_and_replaced(bot: Bot, node: Node) -> None:
    state = Path(node.environment["CLUSTERWRIGHT_AGENT__STATE_DIR"]) / "agent-state.json"
    state.parent.mkdir()
    state.write_text('{"boot_id": 7')
    node.write(XID.format(code=79))
    node.start()
    wait_for(lambda: bot.counts() == {"79": 1})
    assert "saved state cannot be read" in node.log()


def test_the_agent_stays_small(bot: Bot, node: Node) -> None:
    node.start()
    node.write(*[XID.format(code=code) for code in range(1, 177)])
    wait_for(lambda: len(bot.counts()) > 100)
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0])
    assert resident <= 25_000, f"{resident} kB"
