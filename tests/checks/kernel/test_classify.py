"""The command as people and scripts run it: streams, long logs, bad input, what it loads."""

import json
import os
import random
import resource
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.kernel.classify import Classifier, json_line, table_row

PROGRAM = [sys.executable, "-m", "bot.cli"]
XID = "NVRM: Xid (PCI:0000:3d:00): {code}, pid=1, name=job"


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], input=text, capture_output=True, text=True, check=False, timeout=60
    )


def classified(text: str, since: float | None = None, boot_at: float | None = None) -> list[Any]:
    classifier, events = Classifier(since=since, boot_at=boot_at), []
    for number, line in enumerate(text.encode().split(b"\n"), start=1):
        events += classifier.feed(line, number, time.time())
    return [*events, *classifier.finish()]


def test_an_event_is_one_json_object_with_every_field() -> None:
    done = run("classify", text=f"[ 5.0] {XID.format(code=79)}\n")
    event = json.loads(done.stdout)
    assert event | {"summary": "", "text": ""} == {
        "code": "79",
        "subsystem": "xid",
        "gpu": "0000:3d:00.0",
        "device": None,
        "severity": "critical",
        "action": "failover",
        "event": True,
        "count": 1,
        "line": 1,
        "lines": [1],
        "companion_of": None,
        "rule": "3.1 RESTART_BM",
        "summary": "",
        "text": "",
        "host": None,
    }
    assert "fallen off" in event["summary"].lower().replace("_", " ")


def test_the_table_is_for_people() -> None:
    done = run("classify", "--format", "table", text=XID.format(code=79))
    head, row = done.stdout.splitlines()
    assert head.split()[:4] == ["LINE", "SEVERITY", "ACTION", "SUBSYSTEM"]
    assert row.split()[:6] == ["1", "critical", "failover", "xid", "79", "0000:3d:00.0"]


def test_known_lines_without_a_fault_are_printed_on_request() -> None:
    text = "NVRM: GPU6 RPC history (CPU -> GSP):"
    assert run("classify", text=text).stdout == ""
    assert json.loads(run("classify", "--all", text=text).stdout)["event"] is False


@pytest.mark.parametrize(("code", "words"), [("79", "failover"), ("20034", "sxid"), ("gpu-lost", "PCIe bus")])
def test_a_code_is_explained(code: str, words: str) -> None:
    done = run("classify", "--explain", code)
    assert done.returncode == 0
    assert words in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("classify", "/nowhere/kernel.log"),
        ("classify", "/"),
        ("classify", "--driver", "newest"),
        ("classify", "--since", "yesterday"),
        ("classify", "--explain", "no-such-code"),
        ("classify", "--no-such-option"),
        ("classify", "--format", "yaml"),
        ("no-such-command",),
        ("agent", "--config", "/nowhere/agent.toml"),
    ],
)
def test_wrong_use_is_one_line_on_stderr_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["classify", "agent", "bot", "reconciler"])
def test_every_command_has_an_example_and_its_exit_codes_in_its_help(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Example: " in done.stdout
    assert "Exit codes" in done.stdout


@pytest.mark.parametrize("arguments", [("classify", "--explain", "79"), ("checks", "list")])
def test_small_commands_load_nothing_of_the_large_programs(arguments: tuple[str, ...]) -> None:
    script = (
        "import sys; from bot.cli import main\n"
        f"sys.argv = ['clusterwright', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1].replace("'", '"')))
    assert {"checks", "msgspec"} <= loaded
    assert not loaded & {
        "pydantic",
        "kubernetes",
        "slack_bolt",
        "slack_sdk",
        "github",
        "starlette",
        "structlog",
    }


def test_the_agent_command_becomes_the_agent_and_keeps_nothing_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    settings = {"NODE": "n", "BOT_URL": "http://127.0.0.1:1", "TOKEN_FILE": tmp_path / "token"}
    settings |= {"STATE_DIR": tmp_path / "state", "ROOT": tmp_path}
    environment = {f"CLUSTERWRIGHT_AGENT__{key}": str(value) for key, value in settings.items()}
    program = subprocess.Popen(
        [*PROGRAM, "agent"], env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    )
    assert program.stderr is not None
    while "agent of node n started" not in program.stderr.readline():
        assert program.poll() is None
    command = Path(f"/proc/{program.pid}/cmdline").read_bytes().split(b"\0")
    maps = Path(f"/proc/{program.pid}/maps").read_text()
    program.terminate()
    program.communicate(timeout=20)
    assert program.returncode == 0
    assert command[1:3] == [b"-m", b"checks"]
    assert "pydantic" not in maps


def test_a_live_log_is_answered_while_it_stays_open() -> None:
    with subprocess.Popen([*PROGRAM, "classify"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(XID.format(code=79).encode() + b"\n")
        program.stdin.flush()
        readable, _, _ = select.select([program.stdout], [], [], 20)
        assert readable
        assert json.loads(os.read(program.stdout.fileno(), 4096))["code"] == "79"
        program.stdin.close()
        assert program.wait(20) == 0


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    text = "\n".join(f"[{second}.0] {XID.format(code=79)}" for second in range(0, 3_000_000, 1000))
    program = subprocess.Popen(
        [*PROGRAM, "classify"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout is not None
    program.stdout.close()
    _, errors = program.communicate(text.encode(), timeout=60)
    assert (program.returncode, errors) == (0, b"")


def test_a_long_log_takes_constant_memory(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    gpus = [f"PCI:0000:{bus:02x}:00" for bus in range(0x10, 0x2D)]
    with log.open("w") as file:
        for number in range(40_000):
            gpu = gpus[number % len(gpus)]
            file.write(f"[{number / 1000:12.6f}] NVRM: Xid ({gpu}): 31, pid={number}, name=job, MMU Fault\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = run("classify", str(log))
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(events) == len(gpus)
    assert sum(event["count"] for event in events) == 40_000
    assert max(len(event["lines"]) for event in events) <= 32
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss - before < 60_000


def test_a_line_without_an_end_costs_no_memory(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_bytes(b"NVRM: " * 5_000_000 + b"\n" + XID.format(code=79).encode())
    assert [json.loads(line)["code"] for line in run("classify", str(log)).stdout.splitlines()] == ["79"]


def test_lines_about_one_fault_are_one_event_until_ten_quiet_minutes() -> None:
    times = (0, 500, 1000, 1700)
    events = classified("\n".join(f"[{time}.0] {XID.format(code=79)}" for time in times))
    assert [(event.count, event.lines) for event in events] == [(3, (1, 2, 3)), (1, (4,))]


def test_a_new_boot_ends_what_was_open() -> None:
    xid = f"[ 5.0] {XID.format(code=79)}"
    events = classified(f"{xid}\n[ 0.0] Linux version 6.8.0-60-generic\n{xid}")
    assert [event.count for event in events if event.event] == [1, 1]


def test_older_lines_are_skipped_on_request() -> None:
    now = time.time()
    old, new = (time.strftime("%b %d %H:%M:%S", time.localtime(now - age)) for age in (7200, 60))
    text = f"{old} gpu-01 kernel: {XID.format(code=79)}\n{new} gpu-01 kernel: {XID.format(code=48)}"
    assert [event.code for event in classified(text, since=now - 3600)] == ["48"]


def test_a_stamp_since_boot_is_compared_by_when_this_machine_booted() -> None:
    text = f"[ 100.0] {XID.format(code=79)}\n[ 9000.0] {XID.format(code=48)}"
    assert [event.code for event in classified(text, since=5000.0, boot_at=0.0)] == ["48"]


def test_the_driver_branch_is_taken_from_its_banner() -> None:
    xid = (
        "NVRM: Xid (PCI:0000:3d:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 14 "
        "(0x00000482 0x00000040 0x00000000 0x00000000 0x00000000 0x00000000)"
    )
    banner = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)\n"
    assert classified(banner.format("570.148.08") + xid)[-1].severity == "critical"
    assert classified(banner.format("580.105.08") + xid)[-1].severity == "unknown"


@given(st.lists(st.binary(max_size=200), max_size=8))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_bytes_ever_crash_the_parsers(lines: list[bytes]) -> None:
    assert_readable(lines)


FRAGMENTS = Path("tests/data/kernel_lines.jsonl").read_bytes().split(b'"')
FRAGMENTS += Path("tests/data/kernel_wordings.jsonl").read_bytes().split(b'"')
PIECE = st.one_of(
    st.sampled_from(FRAGMENTS), st.binary(max_size=8), st.sampled_from([b"\x1b[31m", b"\\x0a", b"#012"])
)


@given(st.lists(st.lists(PIECE, min_size=1, max_size=6).map(b"".join), max_size=6))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=300)
def test_no_mixture_of_kernel_texts_ever_crashes_the_parsers(lines: list[bytes]) -> None:
    assert_readable(lines)


def assert_readable(lines: list[bytes]) -> None:
    classifier, events = Classifier(), []
    for number, line in enumerate(lines, start=1):
        events += classifier.feed(line, number, 1_790_000_000.0)
    for event in (*events, *classifier.finish()):
        assert json.loads(json_line(event))["code"] == event.code
        assert table_row(event).isprintable()


def test_no_line_costs_more_than_linear_time() -> None:
    chance = random.Random(7)
    words = [fragment for fragment in FRAGMENTS if 4 < len(fragment) < 400]
    slowest = 0.0
    for _ in range(300):
        line = chance.choice(words) + chance.choice(words)[: chance.randrange(1, 30)] * 400
        classifier, start = Classifier(), time.process_time()
        list(classifier.feed(line, 1, 1_790_000_000.0))
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 0.1
