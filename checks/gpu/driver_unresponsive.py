"""driver-unresponsive: NVML does not answer within its deadline (table 1.1)."""

from checks.check import (
    WELL,
    Check,
    CheckContext,
    CheckResult,
    DebounceRule,
    Observation,
    Symptom,
    Unobservable,
)
from checks.finding import Action, Severity
from checks.gpu.nvml_process import DEADLINE_SECONDS
from checks.gpu.snapshot import GRACE_SECONDS, snapshot_of

CRITICAL_MISSES = 2
"""Deadlines missed in a row that make it critical."""


def observe(context: CheckContext) -> CheckResult:
    """Judge how many deadlines were missed since the last round with an answer to every call."""
    gpus = snapshot_of(context)
    if isinstance(gpus, Unobservable):
        return gpus
    if not gpus.misses:
        return WELL
    critical = gpus.misses >= CRITICAL_MISSES
    symptom = Symptom(
        code="driver-unresponsive",
        subsystem="nvml",
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        action=Action.REBOOT if critical else Action.NONE,
        summary=f"Calls into the NVIDIA driver do not return within {DEADLINE_SECONDS:g} s.",
        evidence=f"{gpus.missed}; deadlines missed in a row: {gpus.misses}",
    )
    return Observation(symptoms=(symptom,))


CHECK = Check(
    name="driver-unresponsive",
    about="calls into the NVIDIA driver return",
    observe=observe,
    rule=DebounceRule(raise_polls=1, clear_polls=3, boot_grace_seconds=GRACE_SECONDS),
    needs_gpus=True,
)
