"""ecc-uncorrected, ecc-corrected and sram-threshold: memory errors of the GPU (table 1.1).

Counters are totals since the driver was loaded or the GPU was reset. Only their growth counts (rule T3).
"""

from collections.abc import Iterator

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.counters import increase_within, last_reading, watched_seconds
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml

HOLD_PART = 0.5
"""Part of the threshold below which a rate that was too high counts as normal again (table 1.1)."""

SRAM_QUIET_SECONDS = 1200.0
"""Two readings of the board without the flag; a single one clears nothing (rule T12)."""

CRITICAL_WATCHED_SECONDS = 50.0
"""A storm of corrected errors is judged from the second observation on."""


def observe_uncorrected(context: CheckContext) -> CheckResult:
    """Count errors since the first observation of this boot; a counter that went back means a reset."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    readings: dict[str, float] = {}
    found = []
    for sample in gpus.samples:
        if sample.ecc_uncorrected is None:
            continue
        total, first = sample.ecc_uncorrected, f"{sample.gpu} first"
        before, base = last_reading(context.past, sample.gpu), last_reading(context.past, first)
        if before is not None and total < before:
            base = 0.0
        base = total if base is None else base
        readings |= {sample.gpu: total, first: base}
        if total > base:
            found.append(_uncorrected(sample.gpu, int(total - base)))
    return Observation(symptoms=tuple(found), readings=readings)


def _uncorrected(gpu: str, count: int) -> Symptom:
    return Symptom(
        code="ecc-uncorrected",
        subsystem="ecc",
        severity=Severity.CRITICAL,
        action=Action.RESET_GPU,
        gpu=gpu,
        summary="The GPU's memory had uncorrectable errors.",
        evidence=f"{count} uncorrected errors since the agent started to observe",
    )


def observe_corrected(context: CheckContext) -> CheckResult:
    """Judge how many corrected errors a second each GPU had."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    totals = {each.gpu: each.ecc_corrected for each in gpus.samples if each.ecc_corrected is not None}
    found = [symptom for gpu, total in totals.items() for symptom in _corrected(context, gpu, total)]
    return Observation(symptoms=tuple(found), readings={gpu: float(total) for gpu, total in totals.items()})


def _corrected(context: CheckContext, gpu: str, total: int) -> Iterator[Symptom]:
    limits = context.policy.gpu
    span = limits.ecc_corrected_seconds
    watched = watched_seconds(context.past, gpu, context.uptime)
    if watched < min(CRITICAL_WATCHED_SECONDS, span):
        return
    rate = increase_within(context.past, gpu, total, context.uptime, span) / min(watched, span)
    critical = rate > limits.ecc_corrected_critical_per_second
    raises = critical or (rate > limits.ecc_corrected_per_second and watched >= span)
    if raises or rate > limits.ecc_corrected_per_second * HOLD_PART:
        yield Symptom(
            code="ecc-corrected",
            subsystem="ecc",
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            action=Action.ASK if critical else Action.NONE,
            gpu=gpu,
            summary="The GPU's memory has many corrected errors; a storm of them slows every driver call.",
            evidence=f"{rate:.1f} corrected errors a second",
            only_holds=not raises,
        )


def observe_sram(context: CheckContext) -> CheckResult:
    """Find boards whose SRAM has had more uncorrectable errors than the vendor allows.

    Runs every minute although boards are read less often, so that a reading right after an Xid 48 or 172 is
    reported at once.
    """
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    sick = [each.gpu for each in gpus.samples if each.board is not None and each.board.sram_exceeded]
    return Observation(symptoms=tuple(map(_sram, sick)))


def _sram(gpu: str) -> Symptom:
    return Symptom(
        code="sram-threshold",
        subsystem="ecc",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        gpu=gpu,
        summary="The GPU's SRAM has exceeded the vendor's limit of uncorrectable errors: replace the board.",
    )


UNCORRECTED = Check(
    name="ecc-uncorrected",
    about="GPU memory has no uncorrectable errors",
    observe=observe_uncorrected,
    rule=DebounceRule(raise_polls=1, clear_polls=2),
    needs_gpus=True,
)
CORRECTED = Check(
    name="ecc-corrected",
    about="GPU memory has few corrected errors",
    observe=observe_corrected,
    rule=DebounceRule(raise_polls=1, clear_polls=2, clear_seconds=600.0),
    needs_gpus=True,
)
SRAM = Check(
    name="sram-threshold",
    about="GPU SRAM is within the vendor's error limit",
    observe=observe_sram,
    rule=DebounceRule(raise_polls=1, clear_polls=2, clear_seconds=SRAM_QUIET_SECONDS),
    needs_gpus=True,
)
