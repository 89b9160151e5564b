"""Event: what one kernel message says, judged; and the texts (wordings) that a driver's table is made of.

A parser returns a `KernelEvent` for a text that it knows, also when that text is no fault (`event` is False),
and None for a text that it does not know.
"""

import re
from collections.abc import Iterable

import msgspec

from checks.finding import Action, Severity
from checks.kernel.codes.catalog import kernel_codes


class KernelVerdict(msgspec.Struct, frozen=True):
    """How bad, what to do about it, and the rule (node-check section, modifier or K-rule) that says so."""

    severity: Severity
    action: Action
    rule: str

    @property
    def rank(self) -> tuple[int, int]:
        """Order among verdicts: a known danger first, then what a person has to look at."""
        return self.severity.rank, self.action.rank


class KernelEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel message, or several about one fault.

    `code` and `subsystem` say what it is, `gpu` is the PCI address in sysfs form when the fault is a GPU's,
    `device` whatever else tells two faults apart (port, drive, DIMM, link). `count` is the number of
    occurrences that the text stands for; `echo` marks a second message about a counted occurrence.
    `companion_of` is the code of the fault that it belongs to. `lines` are input line numbers, from 1.
    `host` is the node that a pasted line names.
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
    host: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of the fault within one boot of one node (K19)."""
        return self.subsystem, self.code or "", self.gpu or "", self.device or ""

    @property
    def kind(self) -> tuple[str, str]:
        """What it is, wherever it is."""
        return self.subsystem, self.code or ""

    @property
    def verdict(self) -> KernelVerdict:
        """Its severity, action and rule as one value."""
        return KernelVerdict(self.severity, self.action, self.rule)

    def times(self, count: int) -> "KernelEvent":
        """Return the same event, seen `count` times."""
        return msgspec.structs.replace(self, count=self.count * count)

    def judged(self, verdict: KernelVerdict) -> "KernelEvent":
        """Return the same event with another verdict."""
        return msgspec.structs.replace(
            self, severity=verdict.severity, action=verdict.action, rule=verdict.rule
        )


class Wording(msgspec.Struct, frozen=True):
    """A text that a driver prints. `verdict` None makes it a known line that is no fault.

    Named groups of `regex` are facts: `gpu` and `address` a PCI address, `device` what tells two faults
    apart, `count` a printed number of occurrences. `echo` marks the second line about one occurrence.
    """

    regex: re.Pattern[str]
    subsystem: str
    code: str | None = None
    verdict: KernelVerdict | None = None
    summary: str = ""
    echo: bool = False

    def read(self, text: str) -> KernelEvent | None:
        """Return what `text` means, None when it is another text."""
        match = self.regex.match(text)
        if match is None:
            return None
        facts = match.groupdict()
        gpu = pci_address(facts.get("gpu") or "")
        device = facts.get("device") or pci_address(facts.get("address") or "")
        if self.verdict is None:
            return context(self.subsystem, self.code, device)
        where = f"GPU {gpu}" if gpu else device
        return KernelEvent(
            code=self.code,
            subsystem=self.subsystem,
            severity=self.verdict.severity,
            action=self.verdict.action,
            rule=self.verdict.rule,
            gpu=gpu,
            device=None if gpu else device,
            echo=self.echo,
            count=max(1, int(facts.get("count") or 1)),
            summary=f"{where}: {self.summary}" if where else self.summary[:1].upper() + self.summary[1:],
            text=text,
        )


def fault(code: str, *regexes: str, echo: bool = False) -> tuple[Wording, ...]:
    """Return the wordings of a fault of section 3.7; `@` in a pattern stands for a PCI address."""
    row = kernel_codes()[code]
    verdict = KernelVerdict(row.severity, row.action, f"3.7 {code}")
    return tuple(
        Wording(_compile(regex), row.subsystem, code, verdict, row.summary, echo) for regex in regexes
    )


def variant(
    wordings: tuple[Wording, ...], summary: str, verdict: tuple[Severity, Action] | None = None
) -> tuple[Wording, ...]:
    """Return wordings of a fault with a summary, and a verdict, that are not those of the catalogue's row."""
    return tuple(
        msgspec.structs.replace(
            each,
            summary=summary,
            verdict=KernelVerdict(*verdict, f"3.7 {each.code}") if verdict else each.verdict,
        )
        for each in wordings
    )


def noise(subsystem: str, *regexes: str, code: str | None = None) -> tuple[Wording, ...]:
    """Return wordings that are no fault (K18); `code` names good news that ends one."""
    return tuple(Wording(_compile(regex), subsystem, code) for regex in regexes)


def first(wordings: Iterable[Wording], text: str) -> KernelEvent | None:
    """Return what the first wording that fits makes of `text`; tables go from the special to the general."""
    for wording in wordings:
        if (event := wording.read(text)) is not None:
            return event
    return None


def context(subsystem: str, code: str | None = None, device: str | None = None) -> KernelEvent:
    """Return the event of a known line without a fault of its own (K18)."""
    return KernelEvent(code=code, subsystem=subsystem, device=device, event=False)


def pci_address(text: str) -> str | None:
    """Return a printed PCI address in sysfs form (`0000:1b:00.0`), None for other text."""
    match = _ADDRESS.match(text)
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    short = domain.lower().lstrip("0").rjust(4, "0")
    return f"{short}:{bus.lower()}:{device.lower()}.{function or '0'}"


ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
"""Pattern of a PCI address as drivers print it: domain of 4 to 8 digits, bus, device, function or none."""

_ADDRESS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?\Z")


def _compile(regex: str) -> re.Pattern[str]:
    return re.compile(regex.replace("@", ADDRESS))
