"""The first look at a kernel record: it may let too much through, and must never keep an event back."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.kmsg import KernelLog, KernelRecord, KmsgFollower, LostRecords
from checks.kernel.source.line import read_line, record_line
from checks.kernel.source.prefilter import DUMP, KERNEL, WANTED

BOOT = "4,0,1,-;Linux version 6.8.0"
XID = "NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=1, name=job"
NOISE = (
    "systemd-journald[812]: Received request 4 to flush runtime journal",
    'audit: type=1400 audit(1700000000.1:22): apparmor="DENIED" operation="open" profile="example" pid=12',
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth12ab: link becomes ready",
    "docker0: port 1(veth12ab) entered blocking state",
    "[UFW BLOCK] IN=eth0 OUT= MAC=aa SRC=10.0.0.4 DST=10.0.0.5 LEN=60",
    "TCP: request_sock_TCP: Possible SYN flooding on port 8080. Sending cookies.",
    "usb 1-1: new high-speed USB device number 4 using xhci_hcd",
    "NVRM: GPU3 dumping register 00000f00 of unit 3",
    "NVRM:      0    76   GSP_RM_CONTROL       0x0000000020801348 0x0000000000000008",
)


@pytest.fixture
def wake() -> Iterator[int]:
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends[0]
    for end in ends:
        os.close(end)


def recorded() -> list[str]:
    """Return every kernel text of the corpora, as its line says it after the prefix."""
    found = []
    for name in ("kernel_lines", "kernel_wordings"):
        for row in Path(f"tests/data/{name}.jsonl").read_text(encoding="utf-8").splitlines():
            found.append(json.loads(row)["line"])
    return found


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def given(path: Path, wake: int) -> tuple[list[KernelRecord | LostRecords], KmsgFollower]:
    follower = KmsgFollower(KernelLog(path, 0.01, wake), KERNEL, None)
    items: list[KernelRecord | LostRecords] = []
    last: Any = -1
    while follower.last != last:
        last = follower.last
        items += follower.read(0)
    follower.close()
    return items, follower


def events(items: list[KernelRecord | LostRecords]) -> list[tuple[str | None, str | None, int]]:
    reader, found = KernelLogReader(), []
    for item in items:
        line = record_line(item.header) if isinstance(item, KernelRecord) else None
        if line is not None and isinstance(item, KernelRecord):
            for event in reader.events(line, item.header.sequence):
                found += [(event.code, event.gpu or event.device, item.count)] if event.event else []
    return found


@pytest.mark.parametrize("lines", recorded())
def test_no_recorded_event_is_kept_back(lines: str) -> None:
    reader = KernelLogReader()
    for number, raw in enumerate(lines.encode("utf-8", "surrogateescape").split(b"\n"), start=1):
        line = read_line(raw, time.time())
        if line is None:
            continue
        text = "\\x0a".join(line.texts).encode("utf-8", "surrogateescape")
        record = b"\n4,%d,5,-;%b%b\n" % (number, b" " * line.indented, text)
        kept = any(each.lastindex == WANTED or KERNEL.dump(each[DUMP]) for each in KERNEL.find(record))
        if any(each.event for each in reader.events(line, number)):
            assert kept or KERNEL.anywhere in record, record


@pytest.mark.parametrize("text", NOISE)
def test_foreign_lines_and_dumps_are_not_given(text: str, tmp_path: Path, wake: int) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"6,1,1,-;{text}\n 	continuation\n SUBSYSTEM=pci\n")
    items, follower = given(log, wake)
    assert items == []
    assert follower.last == 1


def test_what_user_space_wrote_is_not_given_whatever_it_says(tmp_path: Path, wake: int) -> None:
    log = tmp_path / "kmsg"
    log.write_text("".join(f"{8 + n},{n},1,-;{XID.format(bus='1b', code=79)}\n" for n in range(200)))
    items, follower = given(log, wake)
    assert items == []
    assert follower.last == 199


def test_xids_that_repeat_are_counted_unread_and_none_is_lost(tmp_path: Path, wake: int) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"{BOOT}\n")
    follower = KmsgFollower(KernelLog(log, 0.01, wake), KERNEL, None)
    while follower.read(0):
        pass
    texts = [XID.format(bus=bus, code=31) for bus in ("1b", "43", "52")]
    append(log, "".join(f"4,{n},1,c;{texts[n % 3]}\n" for n in range(1, 1501)))
    items = follower.read(0)
    follower.close()
    assert events(items) == [("31", f"0000:{bus}:00.0", 500) for bus in ("43", "52", "1b")]


def test_what_decides_about_other_xids_keeps_its_place_among_them(tmp_path: Path, wake: int) -> None:
    log = tmp_path / "kmsg"
    log.write_text(f"{BOOT}\n")
    follower = KmsgFollower(KernelLog(log, 0.01, wake), KERNEL, None)
    while follower.read(0):
        pass
    lost, decision = XID.format(bus="1b", code=79), XID.format(bus="1b", code=154)
    told = [lost, lost, decision, lost, decision]
    append(log, "".join(f"4,{n},1,c;{text}\n" for n, text in enumerate(told, start=1)))
    items = follower.read(0)
    follower.close()
    assert [(code, count) for code, _, count in events(items)] == [
        ("79", 2), ("154", 1), ("79", 1), ("154", 1),
    ]  # fmt: skip


def test_records_of_the_backlog_are_given_one_by_one_for_they_have_times_of_their_own(
    tmp_path: Path, wake: int
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("".join(f"4,{n},{n * 10**6},c;{XID.format(bus='1b', code=31)}\n" for n in range(50)))
    items, _ = given(log, wake)
    assert len(items) == 50
