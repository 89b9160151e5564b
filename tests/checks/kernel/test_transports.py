"""Every transport gives the same event for every known text, and none for what user space wrote."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.kernel import classify
from checks.kernel.classify import Classifier

STAMP = "2026-05-27T04:18:33.211323+00:00"
JOURNAL = {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "_HOSTNAME": "gpu-01"}


def record(text: str) -> str:
    return text.replace("\\", "\\x5c")


def journal(text: str) -> dict[str, str]:
    return {"__CURSOR": "s=1;i=2", **JOURNAL, "MESSAGE": text}


def pretty(text: str) -> str:
    return json.dumps(journal(text), indent="\t", separators=(",", " : "), ensure_ascii=False)


def dmesg_json(text: str) -> str:
    return json.dumps({"dmesg": [{"fac": "kern", "pri": "warn", "time": 8123.5, "msg": text}]}, indent=3)


TRANSPORTS: dict[str, Callable[[str], str]] = {
    "dmesg": lambda text: f"[ 8123.552817] {text}",
    "talos": lambda text: f"kern: warning: [{STAMP}]: {text}",
    "talos-nodes": lambda text: f"10.40.2.17: kern:     err: [2026-05-11T07:12:40.931100027Z]: {text}",
    "sonic": lambda text: f"Jun 17 20:18:08.123456 leaf-7 WARNING kernel: [ 8123.552817] {text}",
    "sonic-year": lambda text: f"2026 Jun 17 20:18:08.123456 leaf-7 ERR kernel: [ 8123.552817] {text}",
    "facility-level": lambda text: f"Jun 17 20:18:08 gpu-01 kern.warn kernel: {text}",
    "busybox": lambda text: f"Mon Jul 27 10:19:15 2026 kern.warn kernel: [ 7013.909286] {text}",
    "rfc5424": lambda text: f"<4>1 {STAMP} gpu-01 kernel - - - {text}",
    "rfc5424-data": lambda text: f'<4>1 {STAMP} gpu-01 kernel - - [meta sequenceId="29" x="a]b"] ' + text,
    "rfc5424-bom": lambda text: f"<4>1 {STAMP} gpu-01 kernel 0 ID47 - \ufeff{text}",
    "ipv6-host": lambda text: f"{STAMP} fd00:12::7 kernel: {text}",
    "grep": lambda text: f"/var/log/messages-20260617:Jun 17 20:18:08 gpu-01 kernel: {text}",
    "grep-number": lambda text: f"kern.log.1:8812:Jun 17 20:18:08 gpu-01 kernel: {text}",
    "pdsh": lambda text: f"gpu-01: [ 8123.552817] {text}",
    "clush": lambda text: f"gpu-01: Jun 17 20:18:08 gpu-01 kernel: {text}",
    "dmesg-json": dmesg_json,
    "journal-json": lambda text: json.dumps(journal(text)),
    "journal-pretty": pretty,
    "journal-seq": lambda text: "\x1e" + json.dumps(journal(text)),
    "journal-sse": lambda text: "data: " + json.dumps(journal(text)),
    "journal-export": lambda text: "".join(f"{key}={value}\n" for key, value in journal(text).items()),
    "netconsole": lambda text: f"6.8.0-71-generic,4,1814,8123552817,-;{record(text)}",
    "fluent-bit": lambda text: json.dumps(
        {"priority": 4, "sequence": 1814, "sec": 8123, "usec": 552817, "msg": text}
    ),
}

TEXTS = [
    row["line"]
    for row in map(json.loads, Path("tests/data/kernel_wordings.jsonl").read_text("utf-8").splitlines())
    if row["means"] and row["line"].isprintable() and row["line"].startswith(("NVRM:", "mlx5_core", "EXT4"))
]


def told(log: str) -> list[tuple[str | None, str | None, str, str, int]]:
    classifier, events = Classifier(), []
    for number, line in enumerate(log.split("\n"), start=1):
        events += classifier.feed(line.encode(), number, time.time())
    events += classifier.finish()
    return [(each.code, each.gpu, each.severity, each.action, each.count) for each in events if each.event]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport_gives_the_event_of_the_bare_text(transport: str) -> None:
    assert len(TEXTS) > 50
    for text in TEXTS:
        assert told(TRANSPORTS[transport](text)) == told(text), text


XID = "NVRM: Xid (PCI:0000:64:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "line",
    [
        f"10.40.2.17: user: warning: [{STAMP}]: {XID}",
        f"<4>1 {STAMP} gpu-01 agent 99 - - {XID}",
        f"{STAMP} fd00:12::7 agent[9]: {XID}",
        f"messages:Jun 17 20:18:08 gpu-01 agent[9]: {XID}",
        f"daemon.warn agent[99]: {XID}",
        dmesg_json(XID).replace("kern", "user"),
        pretty(XID).replace("kernel", "syslog"),
        f"6.8.0-71-generic,12,1814,8123552817,-;{XID}",
    ],
)
def test_what_user_space_wrote_is_no_event_in_any_transport(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Dear team,\nthe node is slow again.\n", 3),
        (f"{STAMP} fd00:12::7 agent[9]: {XID}\n", 3),
        ("\x1f\x8b\x08\x00rubbish\n", 3),
        ("", 0),
        ("\n\n", 0),
        ("[ 1.0] usb 1-1: new high-speed USB device\n", 0),
        ("Okt 06 17:59:27 node12 kernel: usb 1-1: new USB device\n", 0),
        (XID, 0),
    ],
)
def test_input_without_a_kernel_line_exits_with_3_and_says_so(
    text: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "kernel.log"
    log.write_text(text, encoding="utf-8")
    assert classify.main([str(log)], io.BytesIO(), time.time()) == code
    assert ("no kernel line" in capsys.readouterr().err) == (code == 3)


def test_two_hosts_in_one_log_are_two_nodes() -> None:
    lines = [
        f"Jun 17 20:18:08 gpu-01 kernel: {XID}",
        f"Jun 17 20:18:09 gpu-02 kernel: {XID}",
        (
            "Jun 17 20:18:10 gpu-02 kernel: NVRM: Xid (PCI:0000:64:00): 154, GPU recovery action changed from "
            "0x0 (None) to 0x2 (Node Reboot Required)"
        ),
    ]
    classifier, found = Classifier(), []
    for number, line in enumerate(lines, start=1):
        found += classifier.feed(line.encode(), number, time.time())
    found += classifier.finish()
    assert [(each.host, each.code, each.action.value, each.count) for each in found] == [
        ("gpu-01", "79", "failover", 1), ("gpu-02", "79", "reboot", 1), ("gpu-02", "154", "reboot", 1),
    ]  # fmt: skip
