"""SXid lines: faults of NVSwitches, `nvidia-nvswitchN: SXid (PCI:...): CODE, Fatal, Link 37 ...` (3.6).

The word in the line beats the table: Fatal makes an event critical, Non-fatal caps it at warning.
The address is the switch, so the event names no GPU.
"""

import re

from checks.finding import Action, Severity
from checks.kernel.catalogue import SxidRow, sxids
from checks.kernel.event import ADDRESS, Event, Verdict, context, pci_address

_START = re.compile(r"(?:nvidia-nvswitch(?P<switch>[0-9]{0,4}): *)?SXid\b")
_WHERE = re.compile(rf"\s*\((?P<where>(?:PCI:)?(?P<address>{ADDRESS})?[^()]{{0,80}})\)\s*:?\s*")
_CODE = re.compile(r"0*(?P<code>[0-9]+)")
_DETAIL = re.compile(r"\s*,?\s*(?:Data\b|Severity [0-9]+\b)")
_WORD = re.compile(r"\s*,?\s*(?:(?P<fatal>Fatal\b)|(?P<nonfatal>Non-?[Ff]atal\b|Non-?[Ff]?a?t?a?l?$))")
_LINK = re.compile(r"\bLink ([0-9]{1,3})\b")

_UNPARSED = Verdict(Severity.UNKNOWN, Action.ASK, "K15")
_UNKNOWN_FATAL = Verdict(Severity.CRITICAL, Action.ASK, "S4 Fatal")
_UNKNOWN = Verdict(Severity.UNKNOWN, Action.ASK, "S4")


def parse(text: str) -> Event | None:
    """Return the event in `text`, None when it does not begin as an SXid line."""
    start = _START.match(text)
    if start is None:
        return None
    where = _WHERE.match(text, start.end())
    code = _CODE.match(text, where.end()) if where else None
    if where is None or code is None:
        return _event("sxid-unparsed", None, _UNPARSED, text)
    if _DETAIL.match(text, code.end()):
        return context("sxid")
    number = code["code"] or "0"
    link = _LINK.search(text, code.end())
    device = f"{pci_address(where['address'] or '') or 'switch'}{f'.link.{link[1]}' if link else ''}"
    return _event(number, device, _judge(sxids().get(number), _WORD.match(text, code.end())), text)


def _judge(row: SxidRow | None, word: re.Match[str] | None) -> Verdict:
    fatal = word is not None and word["fatal"] is not None
    if row is None or row.severity is Severity.UNKNOWN:
        return _UNKNOWN_FATAL if fatal else _UNKNOWN
    if fatal:
        action = row.action if row.severity is Severity.CRITICAL else Action.ASK
        return Verdict(Severity.CRITICAL, action, "S1")
    if word is None:
        return Verdict(row.severity, row.action, "S3")
    severity = Severity.INFO if row.severity is Severity.INFO else Severity.WARNING
    return Verdict(severity, Action.NONE, "S2")


def _event(code: str, device: str | None, verdict: Verdict, text: str) -> Event:
    row = sxids().get(code)
    meaning = row.notes if row else "no catalogue knows this code; a person has to look."
    return Event(
        code=code,
        subsystem="sxid",
        severity=verdict.severity,
        action=verdict.action,
        rule=verdict.rule,
        device=device,
        summary=f"SXid {code[:20]} on NVSwitch {device or 'unknown'}: {meaning}",
        text=text,
    )
