"""Xid 74: NVLink before generation 5, judged by the bits of its seven registers (section 3.4).

The worst set bit decides. Bits that the vendor does not describe are unknown and go to a person.
"""

import re
from collections.abc import Iterator

from checks.finding import Action, Severity
from checks.kernel.event import Verdict

UNREADABLE = Verdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 no readable register")
"""Verdict of a line without a register that has a bit set."""

_INFO = Verdict(Severity.INFO, Action.NONE, "3.4 informational bit")
_CORRECTED = Verdict(Severity.WARNING, Action.NONE, "3.4 corrected-ECC threshold")
_SECONDARY = Verdict(Severity.WARNING, Action.ASK, "3.4 secondary")
_MARGINAL = Verdict(Severity.WARNING, Action.ASK, "3.4 marginal signal")
_UNLISTED = Verdict(Severity.UNKNOWN, Action.ASK, "3.4 unlisted bit")
_HARDWARE = Verdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 hardware")
_REPEATS = Verdict(Severity.CRITICAL, Action.RESET_GPU, "3.4 hardware, repeats matter")

HARDWARE = frozenset({_HARDWARE, _REPEATS})
"""Verdicts of a link whose hardware failed: the third time in a week, a reset is not enough."""

_BITS: dict[tuple[int, int], Verdict] = {
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
_LINK = re.compile(r"\blink (\d{1,3})\b")


def judge(message: str) -> Verdict:
    """Return the verdict of the worst bit that is certainly set; a value at a cut end is not certain."""
    found = _REGISTERS.search(message)
    if found is None:
        return UNREADABLE
    values = [int(each, 16) for each in _VALUE.findall(found.group(1))]
    verdicts = [_BITS.get(place, _UNLISTED) for place in _set_bits(values)]
    return max(verdicts, key=lambda verdict: verdict.rank, default=UNREADABLE)


def link(message: str) -> str | None:
    """Return the link the line is about, as part of the fault's identity."""
    found = _LINK.search(message)
    return f"link.{found.group(1)}" if found else None


def _set_bits(values: list[int]) -> Iterator[tuple[int, int]]:
    for register, value in enumerate(values, start=1):
        for bit in range(32):
            if value >> bit & 1:
                yield register, bit
