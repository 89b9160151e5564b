"""Xid lines: `NVRM: Xid (WHERE): CODE, ...` in every shape that drivers print (rules K14, K15, modifier M2).

Only WHERE and CODE are facts about the fault; pid and name are the victim. A line that begins as an Xid and
cannot be read is an event of its own, `xid-unparsed`.
"""

import re

import msgspec

from checks.finding import Action, Severity
from checks.kernel import nvlink4, recovery
from checks.kernel.catalogue import XidRow, xids
from checks.kernel.event import ADDRESS, Event, Verdict, pci_address

RECOVERY_CODE = "154"
"""Xid that announces what the driver wants done."""

_START = re.compile(r"NVRM: *Xid\b")
_WHERE = re.compile(rf"\s*\((?P<where>(?:PCI:)?(?P<gpu>{ADDRESS})?[^()]{{0,80}})")
_CODE = re.compile(r"\)?\s*:?\s*0*(?P<code>[0-9]+)")
_VICTIM = re.compile(r",?\s*pid=(?:'?<unknown>'?|-?[0-9]+)(?:,\s*name=[^,]{0,64})?")
_CAUSE = re.compile(r"caused by previous Xid ([0-9]{1,6})")
_WISH = re.compile(r"\bto (0x[0-9a-fA-F]{1,8} \([^()]{1,64}\)?|0x[0-9a-fA-F]{1,8})")
_RST = re.compile(r"(?<!D-)RST: Yes\b")
_D_RST = re.compile(r"D-RST: Yes\b")

_UNPARSED = Verdict(Severity.UNKNOWN, Action.ASK, "K15")
_NO_ROW = Verdict(Severity.UNKNOWN, Action.ASK, "3.1 no catalogue row")
_M2_RST = Verdict(Severity.CRITICAL, Action.RESET_GPU, "M2 RST")
_M2_D_RST = Verdict(Severity.WARNING, Action.RESET_GPU, "M2 D-RST")


class XidLine(msgspec.Struct, frozen=True):
    """The facts in an Xid line. `code` is decimal without leading zeros, None when it cannot be read.

    `message` is what follows pid and name; `cause` the Xid that the driver itself names as the cause.
    """

    gpu: str | None
    code: str | None
    message: str
    cause: str | None


def read(text: str) -> XidLine | None:
    """Return the facts in `text`, None when it does not begin as an Xid line."""
    start = _START.match(text)
    if start is None:
        return None
    where = _WHERE.match(text, start.end())
    if where is None:
        return XidLine(None, None, text[start.end() :], None)
    gpu = _whole_address(text, where)
    code = _CODE.match(text, where.end()) if text[where.end() : where.end() + 1] == ")" else None
    if code is None:
        return XidLine(gpu, None, text[where.end() :], None)
    victim = _VICTIM.match(text, code.end())
    message = text[victim.end() if victim else code.end() :].lstrip(", ")
    cause = _CAUSE.search(message)
    return XidLine(gpu, code["code"] or "0", message, cause[1] if cause else None)


def event(line: XidLine, text: str) -> Event:
    """Return the event of an Xid line that is no NVLink5 line, judged as if it stood alone."""
    if line.code is None:
        return _event(line, text, _UNPARSED)
    if line.code == RECOVERY_CODE:
        verdict = recovery.judge(line.message)
        # A GPU that needs nothing any more is a fault ended, not the fault going on.
        return _event(line, text, verdict, "cleared" if verdict is recovery.NONE else None)
    if line.code == "74":
        return _event(line, text, nvlink4.judge(line.message), nvlink4.link(line.message))
    return _event(line, text, _after_reset_words(_default(line.code), line.message))


def event_of_verdict(line: XidLine, text: str, verdict: Verdict, device: str | None) -> Event:
    """Return the event of an Xid line that another module has judged; `device` is the part of the GPU."""
    return _event(line, text, verdict, device)


def _event(line: XidLine, text: str, verdict: Verdict, device: str | None = None) -> Event:
    return Event(
        code=line.code or "xid-unparsed",
        subsystem="xid",
        severity=verdict.severity,
        action=verdict.action,
        rule=verdict.rule,
        gpu=line.gpu,
        device=device,
        companion_of=line.cause,
        summary=_summary(line),
        text=text,
    )


def _whole_address(text: str, where: re.Match[str]) -> str | None:
    """Return the address unless the line was cut inside it: then its last field may be short."""
    if where["gpu"] is None:
        return None
    return (
        pci_address(where["gpu"]) if text[where.end("gpu") : where.end("gpu") + 1] in (")", " ", "") else None
    )


def _default(code: str) -> Verdict:
    row = xids().get(code)
    return Verdict(row.severity, row.action, f"3.1 {row.bucket}") if row else _NO_ROW


def _after_reset_words(verdict: Verdict, message: str) -> Verdict:
    if _RST.search(message):
        return _M2_RST
    return _M2_D_RST if _D_RST.search(message) else verdict


def _summary(line: XidLine) -> str:
    where = f"GPU {line.gpu}" if line.gpu else "a GPU whose address the line does not tell"
    if line.code is None:
        return f"The driver reported an Xid on {where} that cannot be read; a person has to look."
    if line.code == RECOVERY_CODE:
        wish = _WISH.search(line.message)
        return f"On {where} the driver now asks for: {wish[1] if wish else 'something that cannot be read'}."
    row: XidRow | None = xids().get(line.code)
    if row is None:
        return f"Xid {line.code[:20]} on {where}: no catalogue knows this code; a person has to look."
    return f"Xid {line.code} ({row.mnemonic}) on {where}: {row.notes}"
