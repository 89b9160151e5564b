"""Event: what one kernel message says, judged; and the small values that a judgement is made of.

A parser returns an `Event` for a text it knows, also when that text is no fault (`event` is False), and None
for a text it does not know.
"""

import re

import msgspec

from checks.finding import EVIDENCE_LIMIT, Action, Finding, Severity


class Verdict(msgspec.Struct, frozen=True):
    """How bad, what to do about it, and the rule (node-check section, modifier or K-rule) that says so."""

    severity: Severity
    action: Action
    rule: str

    @property
    def rank(self) -> tuple[int, int]:
        """Order among verdicts: a known danger first, then what a person has to look at."""
        return self.severity.rank, self.action.rank


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel message, or several about one fault.

    `code` and `subsystem` say what it is, `gpu` is the PCI address in sysfs form when the fault is a GPU's,
    `device` whatever else tells two faults apart (port, drive, DIMM, link). `count` is the number of
    occurrences the text stands for, `echo` marks a second message about one that has been counted.
    `companion_of` is the code of the fault it belongs to. `lines` are input line numbers, from 1.
    """

    code: str | None
    subsystem: str
    severity: Severity = Severity.INFO
    action: Action = Action.NONE
    rule: str = "K18"
    gpu: str | None = None
    device: str | None = None
    event: bool = True
    echo: bool = False
    count: int = 1
    companion_of: str | None = None
    summary: str = ""
    text: str = ""
    lines: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of the fault within one boot of one node (K19)."""
        return self.subsystem, self.code or "", self.gpu or "", self.device or ""

    @property
    def verdict(self) -> Verdict:
        """Its judgement as one value."""
        return Verdict(self.severity, self.action, self.rule)

    def times(self, count: int) -> "Event":
        """Return the same event, met `count` times."""
        return msgspec.structs.replace(self, count=self.count * count)

    def judged(self, verdict: Verdict) -> "Event":
        """Return the same event under another judgement."""
        return msgspec.structs.replace(
            self, severity=verdict.severity, action=verdict.action, rule=verdict.rule
        )


def context(subsystem: str, code: str | None = None, device: str | None = None) -> Event:
    """Return the non-event that a known line without a fault of its own stands for (K18)."""
    return Event(code=code, subsystem=subsystem, device=device, event=False)


def to_finding(event: Event, first_seen: float, last_seen: float) -> Finding:
    """Return the finding that `event` is on a node; times are Unix seconds."""
    return Finding(
        check=event.subsystem,
        subsystem=event.subsystem,
        code=event.code or "",
        severity=event.severity,
        action=event.action,
        gpu=event.gpu,
        device=event.device,
        count=event.count,
        first_seen=first_seen,
        last_seen=last_seen,
        summary=event.summary,
        evidence=event.text[:EVIDENCE_LIMIT],
    )


ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
"""Pattern of a PCI address as drivers print it: domain of 4 to 8 digits, bus, device, function or none."""

_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?\Z")


def pci_address(text: str) -> str | None:
    """Return a printed PCI address in sysfs form (`0000:1b:00.0`), None when `text` is none."""
    match = _ADDRESS.match(text)
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    short = domain.lower().lstrip("0").rjust(4, "0")
    return f"{short}:{bus.lower()}:{device.lower()}.{function or '0'}"
