"""Every row of every catalogue, through the parser: the table is the specification."""

from collections import defaultdict

import pytest

from checks.kernel.codes.catalog import Nvlink5Row, explain, kernel_codes, nvlink5, sxids, xids
from checks.kernel.parse import nvlink, xid
from checks.kernel.parse.reader import parse

DECODED = {row.code for row in xids().values() if row.judged_by}
ROWS = nvlink5()


def test_every_xid_alone_has_the_verdict_of_its_row() -> None:
    for code in xids().keys() - DECODED:
        check_xid(code)


def check_xid(code: str) -> None:
    event = parse(f"NVRM: Xid (PCI:0000:3d:00): {code}, pid=1, name=job", None)
    assert event is not None
    row = xids()[code]
    assert (event.code, event.severity, event.action) == (code, row.severity, row.action)
    assert row.mnemonic in event.summary


@pytest.mark.parametrize("code", sorted(DECODED))
def test_an_xid_that_cannot_be_decoded_is_never_nothing(code: str) -> None:
    event = parse(f"NVRM: Xid (PCI:0000:3d:00): {code}, pid=1, name=job", None)
    assert event is not None
    assert (event.severity, event.action) in {("unknown", "ask"), ("critical", "reset-gpu")}


@pytest.mark.parametrize("word", ["", "Fatal, ", "Non-fatal, "])
def test_every_sxid_under_every_word(word: str) -> None:
    for code in sxids():
        check_sxid(code, word)


def check_sxid(code: str, word: str) -> None:
    event = parse(f"nvidia-nvswitch0: SXid (PCI:0000:86:00.0): {code}, {word}Link 31 some words", None)
    assert event is not None
    row = sxids()[code]
    if row.severity == "unknown":
        expected = ("critical", "ask") if word == "Fatal, " else ("unknown", "ask")
    elif word == "Fatal, ":
        expected = ("critical", row.action if row.severity == "critical" else "ask")
    elif word:
        expected = ("info" if row.severity == "info" else "warning", "none")
    else:
        expected = (row.severity, row.action)
    assert (event.severity, event.action) == expected, code
    assert event.gpu is None


def line_of(code: str, unit: str, intr: int, status: int) -> str:
    return (
        f"NVRM: Xid (PCI:0000:3d:00): {code}, {unit} Fatal XC0 i0 Link 05 "
        f"(0x{intr:08x} 0x{status:08x} 0x00000000 0x00000000 0x00000000 0x00000000)"
    )


@pytest.mark.parametrize("branch", [570, 580])
def test_every_nvlink5_row_under_the_layout_of_its_driver(branch: int) -> None:
    for row in ROWS:
        check_nvlink5(row, branch)


def check_nvlink5(row: Nvlink5Row, branch: int) -> None:
    layout = row.from_r575 if branch >= nvlink.NEW_LAYOUT_BRANCH else row.before_r575
    # Bits outside the mask carry data and must not matter.
    noise = 0x00080000 & ~layout.mask
    for status in row.status or {0x7}:
        event = parse(line_of(row.xid, layout.unit, layout.value | noise, status), branch)
        assert event is not None
        expected = {
            (each.severity, each.action)
            for each in ROWS
            if each.xid == row.xid and matches(each, layout.unit, layout.value | noise, status, branch)
        }
        assert (row.severity, row.action) in expected
        verdict = expected.pop() if len(expected) == 1 else ("unknown", "ask")
        assert (event.severity, event.action) == verdict


def matches(row: Nvlink5Row, unit: str, intr: int, status: int, branch: int) -> bool:
    layout = row.from_r575 if branch >= nvlink.NEW_LAYOUT_BRANCH else row.before_r575
    return (
        layout.unit == unit
        and intr & layout.mask == layout.value
        and (not row.status or status in row.status)
    )


def test_no_two_rows_of_one_layout_contradict_each_other() -> None:
    for branch in (570, 580):
        verdicts = defaultdict(set)
        for row in ROWS:
            layout = row.from_r575 if branch >= nvlink.NEW_LAYOUT_BRANCH else row.before_r575
            for status in row.status or {None}:
                verdicts[row.xid, layout, status].add((row.severity, row.action))
        assert all(len(each) == 1 for each in verdicts.values())


@pytest.mark.parametrize("register", range(1, 8))
def test_every_bit_of_a_74_has_a_verdict(register: int) -> None:
    for bit in range(32):
        values = ", ".join(hex(1 << bit) if place == register else "0x0" for place in range(1, 8))
        verdict = nvlink.judge_registers(f"NVLink: fatal error detected on link 9({values})")
        assert verdict is not nvlink.UNREADABLE_REGISTERS
        assert verdict.severity in {"info", "warning", "critical", "unknown"}


def test_the_worst_bit_of_a_74_decides() -> None:
    assert nvlink.judge_registers("link 9(0x1, 0x0, 0x2000, 0x0, 0x0, 0x0, 0x0)").severity == "unknown"
    assert nvlink.judge_registers("link 9(0x10, 0x0, 0x2000, 0x0, 0x0, 0x0, 0x0)").severity == "critical"
    assert nvlink.judge_registers("link 9(0x1, 0x0, 0x0, 0x0, 0x100000, 0x0, 0x0)").severity == "warning"


@pytest.mark.parametrize("number", range(8))
def test_the_number_of_a_154_decides_when_its_text_is_cut(number: int) -> None:
    verdict = xid.recovery_verdict(f"GPU recovery action changed from 0x0 (None) to 0x{number:x} (Som")
    assert verdict is xid.RECOVERY_BY_NUMBER.get(number, xid.RECOVERY_UNREADABLE)


def test_every_code_can_be_explained() -> None:
    for code in (*xids(), *sxids(), *kernel_codes()):
        found = explain(code)
        assert found is not None, code
        assert found.meaning


def test_every_row_has_a_sentence() -> None:
    texts = [each.notes for each in (*xids().values(), *sxids().values())]
    for text in (*texts, *(each.summary for each in kernel_codes().values())):
        assert text.endswith("."), text
    for note in (note for row in kernel_codes().values() for note in row.notes):
        assert note.endswith("."), note
