"""Pattern: one wording of a driver, and the event that it means.

Each subsystem's module is a table of patterns; the first that matches decides, so a table is read from the
special to the general. Named groups carry facts: `gpu` and `address` a PCI address, `device` what tells two
faults apart, `count` a printed number of occurrences.
"""

import re
from collections.abc import Iterable

import msgspec

from checks.finding import Action, Severity
from checks.kernel.event import ADDRESS, Event, Verdict, context, pci_address


class Pattern(msgspec.Struct, frozen=True):
    """A wording. `verdict` None makes it a known line that is no fault; `echo` a second line about one."""

    regex: re.Pattern[str]
    subsystem: str
    code: str | None = None
    verdict: Verdict | None = None
    summary: str = ""
    echo: bool = False

    def read(self, text: str) -> Event | None:
        """Return what `text` means under this pattern, None when it does not match."""
        match = self.regex.match(text)
        if match is None:
            return None
        facts = match.groupdict()
        gpu = pci_address(facts.get("gpu") or "")
        device = facts.get("device") or pci_address(facts.get("address") or "")
        if self.verdict is None:
            return context(self.subsystem, self.code, device)
        where = f"GPU {gpu}" if gpu else device
        return Event(
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


def fault(regex: str, subsystem: str, code: str, verdict: tuple[Severity, Action], summary: str) -> Pattern:
    """Return the pattern of a fault of section 3.7; `@` in `regex` stands for a PCI address."""
    return Pattern(_compile(regex), subsystem, code, Verdict(*verdict, f"3.7 {code}"), summary)


def echo(pattern: Pattern) -> Pattern:
    """Return the pattern as that of a second line about an occurrence."""
    return msgspec.structs.replace(pattern, echo=True)


def noise(regex: str, subsystem: str, code: str | None = None) -> Pattern:
    """Return the pattern of a known line that is no fault (K18); `code` names good news that ends one."""
    return Pattern(_compile(regex), subsystem, code)


def first(patterns: Iterable[Pattern], text: str) -> Event | None:
    """Return what the first matching pattern makes of `text`."""
    for pattern in patterns:
        if (event := pattern.read(text)) is not None:
            return event
    return None


def _compile(regex: str) -> re.Pattern[str]:
    return re.compile(regex.replace("@", ADDRESS))
