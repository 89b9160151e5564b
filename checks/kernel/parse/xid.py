"""Xid lines: `NVRM: Xid (WHERE): CODE, ...` in every form that drivers print (rules K14, K15, modifier M2).

Only WHERE and CODE are facts about the fault; pid and name are the victim. A line that begins as an Xid and
cannot be read is an event of its own, `xid-unparsed`. An Xid whose message names a recovery action is judged
by that action (section 3.3); NVML field 230 has the same values.
"""

import re

import msgspec

from checks.finding import Action, Severity
from checks.kernel.codes.catalog import XidRow, xids
from checks.kernel.parse import nvlink
from checks.kernel.parse.event import ADDRESS, KernelEvent, KernelVerdict, pci_address

RECOVERY_NONE = KernelVerdict(Severity.INFO, Action.NONE, "3.3 None")
"""The GPU needs nothing any more: clears its Xid findings."""

RECOVERY_UNREADABLE = KernelVerdict(Severity.UNKNOWN, Action.ASK, "3.3 unreadable")
"""Neither text nor number says what the driver wants; it must not read as None."""

_RESET = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "3.3 GPU Reset Required")
_REBOOT = KernelVerdict(Severity.CRITICAL, Action.REBOOT, "3.3 Node Reboot Required")
_DRAIN_P2P = KernelVerdict(Severity.WARNING, Action.ASK, "3.3 Drain P2P")
_DRAIN_AND_RESET = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "3.3 Drain and Reset")
_IMEX = KernelVerdict(Severity.CRITICAL, Action.ASK, "3.3 Recover IMEX Domain")

_RECOVERY_BY_TEXT = {
    "none": RECOVERY_NONE,
    "gpu reset required": _RESET,
    "node reboot required": _REBOOT,
    "drain p2p": _DRAIN_P2P,
    "drain and reset": _DRAIN_AND_RESET,
    "recover imex domain": _IMEX,
}

RECOVERY_VERDICTS = frozenset(_RECOVERY_BY_TEXT.values())
"""Every verdict of a recovery action that can be read."""

RECOVERY_BY_NUMBER = {0: RECOVERY_NONE, 1: _RESET, 2: _REBOOT, 3: _DRAIN_P2P, 4: _DRAIN_AND_RESET}
"""Verdict by the number of a recovery action, in the log and in NVML field 230; IMEX has no fixed number."""

_UNPARSED = KernelVerdict(Severity.UNKNOWN, Action.ASK, "K15")
_NO_ROW = KernelVerdict(Severity.UNKNOWN, Action.ASK, "3.1 no catalogue row")
_M2_RST = KernelVerdict(Severity.CRITICAL, Action.RESET_GPU, "M2 RST")
_M2_D_RST = KernelVerdict(Severity.WARNING, Action.RESET_GPU, "M2 D-RST")


class RecoveryRequest(msgspec.Struct, frozen=True):
    """The recovery action that the driver names through NVML field 230.

    `number` is the field's value; the driver was asked at `at` seconds of uptime or later.
    """

    number: int
    at: float


class XidLine(msgspec.Struct, frozen=True):
    """The facts in an Xid line. `code` is decimal without leading zeros, None when it cannot be read.

    `message` is what follows pid and name; `cause` the Xid that the driver itself names as the cause.
    """

    gpu: str | None
    code: str | None
    message: str
    cause: str | None


def parse(text: str, branch: int | None) -> KernelEvent | None:
    """Return the event in `text`, None when it does not begin as an Xid line.

    `branch` is the driver's major version if known.
    """
    line = _read(text)
    if line is None:
        return None
    row = xids().get(line.code or "")
    verdict, device = _judge(line, row, branch)
    return KernelEvent(
        code=line.code or "xid-unparsed",
        subsystem="xid",
        severity=verdict.severity,
        action=verdict.action,
        rule=verdict.rule,
        gpu=line.gpu,
        device=device,
        companion_of=line.cause,
        summary=_summary(line, row),
        text=text,
    )


def recovery_verdict(message: str) -> KernelVerdict:
    """Return the verdict of the recovery action that `message` says the driver now wants."""
    changes = list(_TO.finditer(message))
    if not changes:
        return RECOVERY_UNREADABLE
    number, text, closed = changes[-1].groups()
    if text is not None and closed:
        return _RECOVERY_BY_TEXT.get(" ".join(text.lower().split()), RECOVERY_UNREADABLE)
    if number is None:
        return RECOVERY_UNREADABLE
    return RECOVERY_BY_NUMBER.get(int(number, 16), RECOVERY_UNREADABLE)


def _read(text: str) -> XidLine | None:
    start = _START.match(text)
    if start is None:
        return None
    where = _WHERE.match(text, start.end())
    if where is None:
        return XidLine(None, None, text[start.end() :], None)
    gpu = None
    # A line that was cut inside the address may have a short last field: that is no address.
    if where["gpu"] is not None and text[where.end("gpu") : where.end("gpu") + 1] in (")", " ", ""):
        gpu = pci_address(where["gpu"])
    code = _CODE.match(text, where.end()) if text[where.end() : where.end() + 1] == ")" else None
    if code is None:
        return XidLine(gpu, None, text[where.end() :], None)
    victim = _VICTIM.match(text, code.end())
    message = text[victim.end() if victim else code.end() :].lstrip(", ")
    cause = _CAUSE.search(message)
    return XidLine(gpu, code["code"] or "0", message, cause[1] if cause else None)


def _judge(line: XidLine, row: XidRow | None, branch: int | None) -> tuple[KernelVerdict, str | None]:
    """Return the verdict of the line alone, and the part of the GPU that it is about."""
    if line.code is None:
        return _UNPARSED, None
    match row.judged_by if row else None:
        case "recovery-action":
            verdict = recovery_verdict(line.message)
            # A GPU that needs nothing any more is the end of a fault, not the fault going on.
            return verdict, "cleared" if verdict is RECOVERY_NONE else None
        case "registers":
            return nvlink.judge_registers(line.message), nvlink.link(line.message)
        case "sub-code":
            verdict = nvlink.judge_sub_code(line.code, line.message, branch)
            return verdict, nvlink.unit_and_link(line.message)
    if _RST.search(line.message):
        return _M2_RST, None
    if _D_RST.search(line.message):
        return _M2_D_RST, None
    return KernelVerdict(row.severity, row.action, f"3.1 {row.bucket}") if row else _NO_ROW, None


def _summary(line: XidLine, row: XidRow | None) -> str:
    where = f"GPU {line.gpu}" if line.gpu else "a GPU whose address is not in the line"
    if line.code is None:
        return f"The driver reported an Xid on {where} that cannot be read; a person has to look."
    if row is None:
        return f"Xid {line.code[:20]} on {where}: no catalogue knows this code; a person has to look."
    if row.judged_by == "recovery-action":
        wanted = _WANTED.search(line.message)
        return (
            f"On {where} the driver now asks for: {wanted[1] if wanted else 'something that cannot be read'}."
        )
    return f"Xid {line.code} ({row.mnemonic}) on {where}: {row.notes}"


_START = re.compile(r"NVRM: *Xid\b")
_WHERE = re.compile(rf"\s*\((?P<where>(?:PCI:)?(?P<gpu>{ADDRESS})?[^()]{{0,80}})")
_CODE = re.compile(r"\)?\s*:?\s*0*(?P<code>[0-9]+)")
_VICTIM = re.compile(r",?\s*pid=(?:'?<unknown>'?|-?[0-9]+)(?:,\s*name=[^,]{0,64})?")
_CAUSE = re.compile(r"caused by previous Xid ([0-9]{1,6})")
_WANTED = re.compile(r"\bto (0x[0-9a-fA-F]{1,8} \([^()]{1,64}\)?|0x[0-9a-fA-F]{1,8})")
_TO = re.compile(r"\bto (?:0x([0-9a-fA-F]{1,8})\b)?\s*(?:\(([^()]{0,64})(\))?)?")
_RST = re.compile(r"(?<!D-)RST: Yes\b")
_D_RST = re.compile(r"D-RST: Yes\b")
