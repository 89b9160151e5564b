"""PCIe: errors that AER reports, failed recoveries, narrow links.

Kernels say Corrected and Uncorrected or, since 2020, Correctable and Uncorrectable. The root port's line
announces what the device's `PCIe Bus Error` line tells in detail: two lines, one fault.
"""

import msgspec

from checks.finding import Action, Severity
from checks.kernel.event import Event, Verdict
from checks.kernel.pattern import echo, fault, noise

_DEAD = (Severity.CRITICAL, Action.FAILOVER)
_REBOOT = (Severity.CRITICAL, Action.REBOOT)
_LOOK = (Severity.WARNING, Action.ASK)
_COUNT = (Severity.INFO, Action.NONE)

# Only the NVIDIA driver's own devices are GPUs; every other driver's address is a port, a NIC or a drive.
_DEVICE = r"(?:nvidia (?P<gpu>@)|[\w-]{1,32} (?P<address>@)): (?:pciehp: |DPC: )?"
_AER = rf"(?:{_DEVICE})?(?:AER: )?"

_FATAL = "a PCIe link had a fatal error; what hangs on it is lost."
_NONFATAL = "a PCIe transaction was lost; the link works on."
_CORRECTED = "PCIe errors were corrected by a repeat; only their rate matters."
_TOO_MANY = "PCIe errors are corrected so often that the link, its slot or its riser may be going bad."
_DOWN = "the device behind a PCIe port vanished without warning."

PATTERNS = (
    fault(
        rf"{_AER}(?:Multiple )?Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received",
        "aer",
        "aer-fatal",
        _DEAD,
        _FATAL,
    ),
    echo(
        fault(
            rf"{_AER}PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Fatal\)",
            "aer",
            "aer-fatal",
            _DEAD,
            _FATAL,
        )
    ),
    fault(
        rf"{_AER}(?:Multiple )?Uncorrect(?:ed|able) \(Non-Fatal\) error (?:message )?received",
        "aer",
        "aer-nonfatal",
        _LOOK,
        _NONFATAL,
    ),
    echo(
        fault(
            rf"{_AER}PCIe Bus Error: severity=Uncorrect(?:ed|able) \(Non-Fatal\)",
            "aer",
            "aer-nonfatal",
            _LOOK,
            _NONFATAL,
        )
    ),
    fault(
        rf"{_AER}(?:Multiple )?Correct(?:ed|able) error (?:message )?received",
        "aer",
        "aer-corrected",
        _COUNT,
        _CORRECTED,
    ),
    echo(
        fault(
            rf"{_AER}PCIe Bus Error: severity=Correct(?:ed|able)",
            "aer",
            "aer-corrected",
            _COUNT,
            _CORRECTED,
        )
    ),
    fault(rf"{_AER}\s*\[ *5\] (?:SDES|Surprise Down)", "aer", "aer-surprise-down", _DEAD, _DOWN),
    fault(rf"{_AER}.{{0,80}}?Surprise (?:Link )?Down", "aer", "aer-surprise-down", _DEAD, _DOWN),
    noise(rf"{_AER}[Dd]evice recovery successful", "aer"),
    fault(
        rf"{_AER}(?:[Dd]evice recovery failed|[\w ]{{0,32}}reset .{{0,60}}?failed)",
        "aer",
        "aer-recovery-failed",
        _REBOOT,
        "recovery from a PCIe error failed; the device stays unusable until the node restarts.",
    ),
    fault(
        rf"{_AER}(?:device has no AER-aware driver|can't recover)",
        "aer",
        "aer-no-recovery",
        _REBOOT,
        "its driver cannot recover from a PCIe error; the node has to restart.",
    ),
    fault(
        rf"{_DEVICE}[\d.]{{1,12}} Gb/s available (?:PCIe )?bandwidth, limited by",
        "pcie",
        "pcie-degraded",
        _LOOK,
        "its PCIe link is narrower or slower than the device can do.",
    ),
)

_OFTEN = Verdict(*_LOOK, "3.7 aer-corrected, over 60 a minute for 10 min")
_SELDOM = Verdict(*_COUNT, "3.7 aer-corrected")


def is_often(event: Event) -> bool:
    """Whether the event is judged for its rate."""
    return event.rule == _OFTEN.rule


def often(event: Event) -> Event:
    """Return corrected errors judged for their rate."""
    return _with(event, _OFTEN, event.summary.replace(_CORRECTED, _TOO_MANY))


def seldom(event: Event) -> Event:
    """Return corrected errors that are few again, judged as each of them is."""
    return _with(event, _SELDOM, event.summary.replace(_TOO_MANY, _CORRECTED))


def _with(event: Event, verdict: Verdict, summary: str) -> Event:
    return msgspec.structs.replace(event.judged(verdict), summary=summary)
