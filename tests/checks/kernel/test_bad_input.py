"""Input that is cut, mixed, dirty or far too long: no crash, nothing invented, and linear time."""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks.finding import EVIDENCE_LIMIT
from checks.kernel.classify import Classifier
from checks.kernel.faults.fault import OpenFault
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.kmsg import KernelLog, KernelRecord, KmsgFollower, LostRecords
from checks.kernel.source.line import record_line
from checks.kernel.source.prefilter import KERNEL
from checks.kernel.source.records import read_header

XID = "NVRM: Xid (PCI:0000:3d:00): {code}, pid=1, name=job"
NOW = 1_790_000_000.0
DIRT = (b"\x1b[0m", b"\x1b[1;31m", b"\x1b[K", b"\x00")
ANY_INPUT = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def recorded() -> list[bytes]:
    """Return the recorded single lines that are one event."""
    cases = map(json.loads, Path("tests/data/kernel_lines.jsonl").read_text(encoding="utf-8").splitlines())
    lines = [case["line"].encode() for case in cases if case["expect"]["event"] and "driver" not in case]
    return [line for line in lines if b"\n" not in line]


LINES = recorded()
PIECES = st.one_of(
    st.sampled_from(LINES),
    st.binary(max_size=40),
    st.sampled_from(
        [b"\n", b";", b"4,1,1,-;", b"12,9,9,c;", b" SUBSYSTEM=pci\n", b"\\x0a", b"NVRM: Xid (PCI:"]
    ),
    st.integers(0, 10**25).map(lambda number: b"%d" % number),
)


@pytest.fixture
def wake() -> Iterator[int]:
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends[0]
    for end in ends:
        os.close(end)


def classified(line: bytes) -> list[KernelEvent]:
    classifier = Classifier()
    return [*classifier.feed(line, 1, NOW), *classifier.finish()]


def told(line: bytes) -> list[tuple[str | None, str | None, str, str, int]]:
    events = [each for each in classified(line) if each.event]
    return [(each.code, each.gpu, each.severity, each.action, each.count) for each in events]


def followed(path: Path, wake: int, *parts: bytes) -> tuple[list[KernelRecord | LostRecords], int | None]:
    path.write_bytes(b"")
    follower = KmsgFollower(KernelLog(path, 0.01, wake), KERNEL, None)
    items: list[KernelRecord | LostRecords] = []
    for part in parts:
        with path.open("ab") as log:
            log.write(part)
        while found := follower.read(0):
            items += found
    follower.close()
    return items, follower.last


# ---- any bytes: no crash, and what comes out can be told


@given(st.lists(PIECES, max_size=12).map(b"".join))
@ANY_INPUT
def test_no_bytes_in_the_kernel_log_crash_the_agents_reading(
    tmp_path: Path, wake: int, content: bytes
) -> None:
    items, _ = followed(tmp_path / "kmsg", wake, content)
    reader = KernelLogReader()
    for item in items:
        if isinstance(item, KernelRecord) and (line := record_line(item.header)) is not None:
            for event in reader.events(line, item.header.sequence):
                finding = OpenFault(event.times(item.count), 0.0, 0.0, first_shown=NOW).finding()
                assert msgspec.json.decode(msgspec.json.encode(finding), type=type(finding)) == finding
                assert len(finding.evidence) <= EVIDENCE_LIMIT


@given(st.lists(PIECES, max_size=12).map(b"".join), st.data())
@ANY_INPUT
def test_where_a_read_ends_makes_no_difference(
    tmp_path: Path, wake: int, content: bytes, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(content)))
    at_once = followed(tmp_path / "kmsg", wake, content)
    in_two = followed(tmp_path / "kmsg", wake, content[:cut], content[cut:])
    texts = [
        [each.header.text for each in items if isinstance(each, KernelRecord)]
        for items, _ in (at_once, in_two)
    ]
    assert sorted(set(texts[0])) == sorted(set(texts[1]))
    assert at_once[1] == in_two[1]


# ---- dirt around a text does not change what it says


@given(st.sampled_from(LINES), st.sampled_from(DIRT), st.data())
@ANY_INPUT
def test_colours_and_nul_anywhere_change_nothing(line: bytes, dirt: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(line)))
    assert told(line[:place] + dirt + line[place:]) == told(line)


@pytest.mark.parametrize("end", [b"\r", b"\r\r", b"\x00\r", b"\x1b[0m\r", b" \t "])
@pytest.mark.parametrize("line", LINES[::5])
def test_a_line_end_of_another_system_changes_nothing(line: bytes, end: bytes) -> None:
    assert told(line + end) == told(line)


def test_bytes_that_are_no_utf8_lose_no_line_and_are_shown() -> None:
    (event,) = classified(b"NVRM: Xid (PCI:0000:3d:00): 79, pid=1, name=\xff\xfe\x80job, GPU has fallen off")
    assert event.code == "79"
    assert "\\xff\\xfe\\x80job" in event.text


# ---- cut and mixed lines


@pytest.mark.parametrize("line", [line for line in LINES if b"Xid" in line])
def test_a_cut_line_never_names_another_gpu(line: bytes) -> None:
    ((_, gpu, *_),) = told(line) or [(None, None)]
    for length in range(len(line)):
        assert {each.gpu for each in classified(line[:length]) if each.event} <= {None, gpu}, line[:length]


def test_a_line_that_another_one_breaks_into_is_seen_and_never_read_as_something_else() -> None:
    whole = XID.format(code=79)
    for length in range(len("NVRM: Xid "), len(whole)):
        (event,) = [each for each in classified((whole[:length] + whole).encode()) if each.event]
        if length <= len("NVRM: Xid (PCI:0000:3d:00"):
            assert (event.code, event.severity) == ("xid-unparsed", "unknown")
        else:
            assert event.gpu == "0000:3d:00.0"


def test_records_that_mix_two_lines_cost_only_themselves(tmp_path: Path, wake: int) -> None:
    good, other = XID.format(code=79).encode(), XID.format(code=48).encode()
    content = b"4,1,1,-;" + good[:30] + b"4,2,1,-;" + other + b"\n4,3,1,-;" + good + b"\n"
    items, last = followed(tmp_path / "kmsg", wake, content)
    assert last == 3
    assert [item.header.sequence for item in items if isinstance(item, KernelRecord)] == [1, 3]


# ---- long lines


@pytest.mark.parametrize("line", [line for line in LINES[::3] if not line.endswith((b"}", b"]"))])
def test_ten_thousand_more_characters_change_nothing(line: bytes) -> None:
    assert told(line + b" " + b"x" * 10_000) == told(line)


def test_a_long_record_is_one_record_and_its_evidence_is_cut(tmp_path: Path, wake: int) -> None:
    text = XID.format(code=79).encode() + b" y" * 5000
    items, _ = followed(tmp_path / "kmsg", wake, b"4,1,1,-;" + text + b"\n4,2,1,-;" + text[:60] + b"\n")
    (first, second) = [item for item in items if isinstance(item, KernelRecord)]
    line = record_line(first.header)
    assert line is not None
    (event,) = KernelLogReader().events(line, 1)
    assert event.code == "79"
    assert len(OpenFault(event, 0.0, 0.0).finding().evidence) <= EVIDENCE_LIMIT
    assert second.header.sequence == 2


def test_no_record_costs_more_than_linear_time() -> None:
    chance = random.Random(11)
    seeds = [
        *LINES,
        b"a",
        b"[",
        b"1",
        b"a: ",
        b"a[1",
        b"4,",
        b"\\x0",
        b"\\x41",
        b"\x1b[",
        b"0000:",
        b"NVRM: ",
        b" ",
    ]
    spent = {}
    for size in (4_000, 32_000):
        began = time.process_time()
        for seed in seeds:
            part = seed[: chance.randrange(1, 40)]
            record = (b"4,1,1,-;" + seed + part * size)[:size]
            list(KERNEL.find(b"\n%b\n" % record))
            KERNEL.dump(record)
            KERNEL.countable(record[len(b"4,1,1,-;") :])
            header = read_header(record)
            line = record_line(header) if header else None
            if line is not None:
                KernelLogReader().events(line, 1)
        spent[size] = time.process_time() - began
    assert spent[32_000] < 8 * spent[4_000] * 3 + 0.1
    assert spent[32_000] / len(seeds) < 0.02
