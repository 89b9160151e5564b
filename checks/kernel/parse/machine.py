"""Host memory and processors: EDAC, machine checks, and what firmware reports through GHES.

A block of lines is one error: the line with CE, UE or the severity decides, headers and dumps do not.
"""

import msgspec

from checks.finding import Action, Severity
from checks.kernel.event import Event
from checks.kernel.pattern import echo, fault, noise

_DEAD = (Severity.CRITICAL, Action.FAILOVER)
_LOOK = (Severity.WARNING, Action.ASK)
_COUNT = (Severity.INFO, Action.NONE)

BOOT_LEFTOVER_SECONDS = 1.0
"""Machine checks logged this early in a boot were left over from the boot before (K20)."""

_MC = r"EDAC (?:\w{1,24} )?(?P<device>(?:MC|PCI|DEVICE)\d{1,4}): (?:(?P<count>\d{1,9}) )?"
_HW = r"(?:\{\d{1,9}\})?\[Hardware Error\]:\s{0,8}"
_PREFIX = r"(?:mce: ?|RAS: ?)?"

PATTERNS = (
    noise(r"EDAC .{0,60}?HANDLING MCE MEMORY ERROR", "edac"),
    fault(
        rf"{_MC}(?:UE\b|Uncorrect(?:ed|able))",
        "edac",
        "edac-ue",
        _DEAD,
        "host memory lost data; replace the DIMM.",
    ),
    fault(
        rf"{_MC}(?:CE\b|Corrected|Correctable)",
        "edac",
        "edac-ce",
        _COUNT,
        "host memory errors were corrected; only their rate matters.",
    ),
    fault(
        rf"{_PREFIX}(?:\[Hardware Error\]: )?Uncorrected hardware memory error",
        "edac",
        "edac-ue",
        _DEAD,
        "host memory lost data; replace the DIMM.",
    ),
    noise(r"EDAC\b", "edac"),
    noise(rf"{_PREFIX}CMCI storm subsided", "mce"),
    fault(
        rf"{_PREFIX}(?:CPU ?\d{{1,5}} BANK ?\d{{1,3}} )?CMCI storm detected",
        "mce",
        "cmci-storm",
        _LOOK,
        "so many corrected machine checks that the kernel polls now; counts are a lower bound.",
    ),
    fault(
        r"BERT: Error records from previous boot",
        "mce",
        "mce-before-boot",
        _LOOK,
        "firmware kept an error record of the boot before this one.",
    ),
    fault(
        rf"{_PREFIX}\[Hardware Error\]: Machine check events logged",
        "mce",
        "mce-logged",
        _COUNT,
        "the processor logged machine checks.",
    ),
    echo(
        fault(
            rf"{_PREFIX}\[Hardware Error\]: CPU ?\d{{1,5}}: Machine Check",
            "mce",
            "mce-logged",
            _COUNT,
            "the processor logged machine checks.",
        )
    ),
    fault(
        rf"{_HW}event severity: recoverable",
        "ghes",
        "ghes-recoverable",
        _LOOK,
        "firmware reported a hardware error that the system survived.",
    ),
    fault(
        rf"{_HW}event severity: fatal",
        "ghes",
        "ghes-fatal",
        _DEAD,
        "firmware reported a fatal hardware error.",
    ),
    noise(rf"{_HW}", "ghes"),
)


def before_boot(event: Event, uptime: float | None) -> Event:
    """Return a machine check of the first second as what it is: left over from the boot before."""
    if event.code != "mce-logged" or uptime is None or uptime >= BOOT_LEFTOVER_SECONDS:
        return event
    return msgspec.structs.replace(
        event,
        code="mce-before-boot",
        severity=_LOOK[0],
        action=_LOOK[1],
        rule="K20",
        summary="The processor reports machine checks left over from the boot before this one.",
    )
