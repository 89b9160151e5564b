"""NVLink: Xid 74 and 144-150 (sections 3.4, 3.5), and the SXids of NVSwitches (section 3.6).

Xid 74, before generation 5, has registers: the worst set bit decides, and bits that the vendor does not
describe are unknown. Xid 144-150 have sub-codes: the vendor's table decides, not the word Fatal or Nonfatal
in the line. Where their bits sit depends on the driver branch; without it both layouts are tried and must
agree. What cannot be decoded is unknown, never nothing.

An SXid line is `nvidia-nvswitchN: SXid (PCI:...): CODE, Fatal, Link 37 ...`. Its word beats the table: Fatal
makes an event critical, Non-fatal caps it at warning. The address is the switch, so the event names no GPU.
"""

import re
from collections.abc import Iterator

from checks.finding import Action, Severity
from checks.kernel.codes.catalog import Nvlink5Layout, Nvlink5Row, SxidRow, nvlink5, sxids
from checks.kernel.parse.event import ADDRESS, KernelEvent, KernelVerdict, context, pci_address

UNREADABLE_REGISTERS = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 no readable register")
"""Verdict of a line without a register that has a bit set."""

_INFO = KernelVerdict(Severity.INFO, Action.NONE, "3.4 informational bit")
_CORRECTED = KernelVerdict(Severity.WARNING, Action.NONE, "3.4 corrected-ECC threshold")
_SECONDARY = KernelVerdict(Severity.WARNING, Action.ASK, "3.4 secondary")
_MARGINAL = KernelVerdict(Severity.WARNING, Action.ASK, "3.4 marginal signal")
_UNLISTED = KernelVerdict(Severity.UNKNOWN, Action.ASK, "3.4 unlisted bit")
_HARDWARE = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 hardware")
_REPEATS = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 hardware, repeats matter")

LINK_HARDWARE = frozenset({_HARDWARE, _REPEATS})
"""Verdicts of a link whose hardware failed; these count as a recurrence of the link's fault (3.4)."""

_BITS: dict[tuple[int, int], KernelVerdict] = {
    (register, bit): verdict
    for register, verdict, bits in (
        (1, _INFO, (0, 23, 30)),
        (1, _SECONDARY, (1, 20)),
        (4, _SECONDARY, (16, 17)),
        (5, _CORRECTED, (20, 23, 26, 29)),
        (1, _MARGINAL, (21, 22)),
        (1, _HARDWARE, (4, 5, 8, 9, 12, 16, 17, 24, 28)),
        (3, _HARDWARE, (0, 1, 2, 6)),
        (5, _HARDWARE, (18, 19, 21, 22, 24, 25, 27, 28)),
        (1, _REPEATS, (27, 29)),
        (3, _REPEATS, (16, 17, 18, 19)),
        (4, _REPEATS, (18,)),
    )
    for bit in bits
}

_REGISTERS = re.compile(r"\(\s*((?:0x[0-9a-fA-F]{1,8}\s*[,)]\s*){1,7})")
_VALUE = re.compile(r"0x([0-9a-fA-F]{1,8})")
_LINK_NUMBER = re.compile(r"\blink (\d{1,3})\b")


def judge_registers(message: str) -> KernelVerdict:
    """Return the verdict of the worst bit that is certainly set; a value at a cut end is not certain."""
    found = _REGISTERS.search(message)
    if found is None:
        return UNREADABLE_REGISTERS
    values = [int(each, 16) for each in _VALUE.findall(found.group(1))]
    verdicts = [_BITS.get(place, _UNLISTED) for place in _set_bits(values)]
    return max(verdicts, key=lambda verdict: verdict.rank, default=UNREADABLE_REGISTERS)


def link(message: str) -> str | None:
    """Return the link of a line with registers, as part of the fault's identity."""
    found = _LINK_NUMBER.search(message)
    return f"link.{found.group(1)}" if found else None


def _set_bits(values: list[int]) -> Iterator[tuple[int, int]]:
    for register, value in enumerate(values, start=1):
        for bit in range(32):
            if value >> bit & 1:
                yield register, bit


UNDECODABLE = KernelVerdict(Severity.UNKNOWN, Action.ASK, "3.5 no match")
"""Verdict of a line that no row, or rows that disagree, explain."""

NEW_LAYOUT_BRANCH = 575
"""First driver branch with the sub-code in bits 6:0 (vendor Xid catalogue)."""

_SUB_CODE = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]{1,31}(?: Degraded)?) +(?:Fatal|Non-?[Ff]atal) +XC(?P<xc>-?\d{1,3}) +i-?\d{1,3}"
    r" +Link +(?P<link>-?\d{1,3}) *\( *0x(?P<intr>[0-9a-fA-F]{8})\b(?: +0x(?P<status>[0-9a-fA-F]{8})\b)?"
)


def judge_sub_code(code: str, message: str, branch: int | None) -> KernelVerdict:
    """Return the verdict of the sub-code in `message`; `branch` is the driver's major version if known."""
    line = _SUB_CODE.search(message)
    if line is None:
        return UNDECODABLE
    matches = [row for row in nvlink5() if row.xid == code and _matches(row, line, branch)]
    if not matches or len({(row.severity, row.action) for row in matches}) > 1:
        return UNDECODABLE
    row = matches[0]
    return KernelVerdict(row.severity, row.action, f"3.5 {row.bucket}, look at {row.look_at}")


def unit_and_link(message: str) -> str | None:
    """Return unit and link of a line with a sub-code: they tell two NVLink faults of one GPU apart."""
    line = _SUB_CODE.search(message)
    return f"{line['unit'].replace(' ', '_')}.link.{int(line['link'])}" if line else None


def _matches(row: Nvlink5Row, line: re.Match[str], branch: int | None) -> bool:
    if row.status and (line["status"] is None or int(line["status"], 16) not in row.status):
        return False
    return any(
        layout.unit == line["unit"] and int(line["intr"], 16) & layout.mask == layout.value
        for layout in _layouts(row, branch)
    )


def _layouts(row: Nvlink5Row, branch: int | None) -> tuple[Nvlink5Layout, ...]:
    if branch is None:
        return row.before_r575, row.from_r575
    return (row.from_r575,) if branch >= NEW_LAYOUT_BRANCH else (row.before_r575,)


_SXID = re.compile(r"(?:nvidia-nvswitch(?P<switch>[0-9]{0,4}): *)?SXid\b")
_SXID_WHERE = re.compile(rf"\s*\((?P<where>(?:PCI:)?(?P<address>{ADDRESS})?[^()]{{0,80}})\)\s*:?\s*")
_SXID_CODE = re.compile(r"0*(?P<code>[0-9]+)")
_SXID_DETAIL = re.compile(r"\s*,?\s*(?:Data\b|Severity [0-9]+\b)")
_SXID_WORD = re.compile(r"\s*,?\s*(?:(?P<fatal>Fatal\b)|(?P<nonfatal>Non-?[Ff]atal\b|Non-?[Ff]?a?t?a?l?$))")
_SXID_LINK = re.compile(r"\bLink ([0-9]{1,3})\b")

_SXID_UNPARSED = KernelVerdict(Severity.UNKNOWN, Action.ASK, "K15")
_SXID_UNKNOWN_FATAL = KernelVerdict(Severity.CRITICAL, Action.ASK, "S4 Fatal")
_SXID_UNKNOWN = KernelVerdict(Severity.UNKNOWN, Action.ASK, "S4")


def parse_sxid(text: str, _branch: int | None = None) -> KernelEvent | None:
    """Return the event of an SXid line, None for any other text; the driver's branch does not matter."""
    start = _SXID.match(text)
    if start is None:
        return None
    where = _SXID_WHERE.match(text, start.end())
    code = _SXID_CODE.match(text, where.end()) if where else None
    if where is None or code is None:
        return _sxid_event("sxid-unparsed", None, _SXID_UNPARSED, text)
    if _SXID_DETAIL.match(text, code.end()):
        return context("sxid")
    number = code["code"] or "0"
    link = _SXID_LINK.search(text, code.end())
    device = f"{pci_address(where['address'] or '') or 'switch'}{f'.link.{link[1]}' if link else ''}"
    return _sxid_event(
        number, device, _judge_sxid(sxids().get(number), _SXID_WORD.match(text, code.end())), text
    )


def _judge_sxid(row: SxidRow | None, word: re.Match[str] | None) -> KernelVerdict:
    fatal = word is not None and word["fatal"] is not None
    if row is None or row.severity is Severity.UNKNOWN:
        return _SXID_UNKNOWN_FATAL if fatal else _SXID_UNKNOWN
    if fatal:
        action = row.action if row.severity is Severity.CRITICAL else Action.ASK
        return KernelVerdict(Severity.CRITICAL, action, "S1")
    if word is None:
        return KernelVerdict(row.severity, row.action, "S3")
    severity = Severity.INFO if row.severity is Severity.INFO else Severity.WARNING
    return KernelVerdict(severity, Action.NONE, "S2")


def _sxid_event(code: str, device: str | None, verdict: KernelVerdict, text: str) -> KernelEvent:
    row = sxids().get(code)
    meaning = row.notes if row else "no catalogue knows this code; a person has to look."
    return KernelEvent(
        code=code,
        subsystem="sxid",
        severity=verdict.severity,
        action=verdict.action,
        rule=verdict.rule,
        device=device,
        summary=f"SXid {code[:20]} on NVSwitch {device or 'unknown'}: {meaning}",
        text=text,
    )
