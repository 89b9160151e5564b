"""clock: a time daemon keeps the node's clock synchronised, according to the kernel (table 1.3)."""

import ctypes
import errno
import os
import struct
from pathlib import Path

import msgspec

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host.files import text

BOOT_ID = "proc/sys/kernel/random/boot_id"

UNSYNCHRONISED = 0x40
"""STA_UNSYNC of adjtimex(2): no time daemon has disciplined the clock lately."""

_HEAD = "I4xqqqqi"
"""struct timex of 64-bit Linux: modes, offset, freq, maxerror and esterror in microseconds, status."""


class ClockState(msgspec.Struct, frozen=True):
    """What the kernel knows of its clock: whether it is synchronised, and how far it may be off."""

    synchronised: bool
    error_seconds: float


def observe(context: CheckContext) -> CheckResult:
    """Read this kernel's clock state. A root with another boot id has no kernel that could be asked."""
    if text(context.root / BOOT_ID) != text(Path("/") / BOOT_ID):
        return Observation()
    state = read_clock()
    return state if isinstance(state, Unobservable) else judge(state, context)


def read_clock() -> ClockState | Unobservable:
    """Return the state of this kernel's clock, without changing anything."""
    answer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).adjtimex(answer) < 0:
        code = ctypes.get_errno()
        return Unobservable(f"adjtimex: {errno.errorcode.get(code, code)} ({os.strerror(code)})")
    _, _, _, _, error, status = struct.unpack_from(_HEAD, answer)
    return ClockState(not status & UNSYNCHRONISED, error / 1e6)


def judge(state: ClockState, context: CheckContext) -> CheckResult:
    """Return what is wrong with the clock."""
    limits = context.policy.host
    if state.synchronised and state.error_seconds <= limits.clock_offset_seconds:
        return Observation()
    kept = "synchronised" if state.synchronised else "not synchronised"
    return Observation(
        symptoms=(
            Symptom(
                code="clock",
                subsystem="clock",
                severity=Severity.WARNING,
                action=Action.ASK,
                summary="The node's clock is not synchronised: certificates, logs and leases will go wrong.",
                evidence=f"{kept}, estimated error {state.error_seconds:g} s",
                rule=DebounceRule(raise_seconds=limits.clock_seconds, clear_polls=1),
            ),
        )
    )


CHECK = Check(name="clock", about="the clock is synchronised", observe=observe, every_seconds=120.0)
