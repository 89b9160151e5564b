"""Xid 154: the recovery action that the driver asks for, by text or by number (section 3.3).

The same values come back from NVML field 230.
"""

import re

import msgspec

from checks.finding import Action, Severity
from checks.kernel.event import Verdict

NONE = Verdict(Severity.INFO, Action.NONE, "3.3 None")
"""The GPU needs nothing any more: closes its Xid findings."""

UNREADABLE = Verdict(Severity.UNKNOWN, Action.ASK, "3.3 unreadable")
"""Neither the text nor the number tells what the driver wants; it must not read as None."""

_RESET = Verdict(Severity.CRITICAL, Action.RESET_GPU, "3.3 GPU Reset Required")
_REBOOT = Verdict(Severity.CRITICAL, Action.REBOOT, "3.3 Node Reboot Required")
_DRAIN_P2P = Verdict(Severity.WARNING, Action.ASK, "3.3 Drain P2P")
_DRAIN_AND_RESET = Verdict(Severity.CRITICAL, Action.RESET_GPU, "3.3 Drain and Reset")
_IMEX = Verdict(Severity.CRITICAL, Action.ASK, "3.3 Recover IMEX Domain")


class Wish(msgspec.Struct, frozen=True):
    """What the driver asked for through NVML, by number; it was asked at `at` seconds of uptime or later."""

    number: int
    at: float


_BY_TEXT = {
    "none": NONE,
    "gpu reset required": _RESET,
    "node reboot required": _REBOOT,
    "drain p2p": _DRAIN_P2P,
    "drain and reset": _DRAIN_AND_RESET,
    "recover imex domain": _IMEX,
}

BY_NUMBER = {0: NONE, 1: _RESET, 2: _REBOOT, 3: _DRAIN_P2P, 4: _DRAIN_AND_RESET}
"""Verdict by the number of Xid 154 and of NVML field 230; the IMEX value has no fixed number."""

_TO = re.compile(r"\bto (?:0x([0-9a-fA-F]{1,8})\b)?\s*(?:\(([^()]{0,64})(\))?)?")


def judge(message: str) -> Verdict:
    """Return what the driver wants after the change that `message` reports."""
    changes = list(_TO.finditer(message))
    if not changes:
        return UNREADABLE
    number, text, closed = changes[-1].groups()
    if text is not None and closed:
        return _BY_TEXT.get(" ".join(text.lower().split()), UNREADABLE)
    if number is None:
        return UNREADABLE
    return BY_NUMBER.get(int(number, 16), UNREADABLE)
