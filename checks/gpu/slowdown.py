"""slowdown, slowdown-sw and temperature: the GPU is slowed by heat or power, or is about to be (table 1.1).

Reasons are a bit mask (rule T4). The power cap (0x4) is normal.
"""

from collections.abc import Callable

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.counters import increase
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import GpuSample

HARDWARE, HARDWARE_HEAT, POWER_BRAKE, SOFTWARE_HEAT = 0x8, 0x40, 0x80, 0x20
"""Bits of the reasons (nvml.h, nvmlClocksEventReason*)."""

EVERY_SECONDS = 60.0

SLOWED_PART = 0.5
"""Part of a minute that has to be slowed to count, even if the mask was clear when read (ours)."""

POLLS = 10
"""Observations of which some have to be slow (table 1.1)."""

_NAMES = ((HARDWARE_HEAT, "heat"), (POWER_BRAKE, "power brake"), (HARDWARE, "hardware"))
_QUIET_SECONDS = 600.0


def observe_hardware(context: CheckContext) -> CheckResult:
    """Find GPUs that the hardware slows down, for heat, power or another reason."""
    mask = HARDWARE | HARDWARE_HEAT | POWER_BRAKE
    return _observe(context, mask, lambda each: each.slowed_ns, _hardware)


def observe_software(context: CheckContext) -> CheckResult:
    """Find GPUs that the driver slows down for heat."""
    return _observe(context, SOFTWARE_HEAT, lambda each: each.slowed_sw_ns, _software)


def _observe(
    context: CheckContext,
    mask: int,
    spent: Callable[[GpuSample], int | None],
    judge: Callable[[GpuSample, DebounceRule], Symptom],
) -> CheckResult:
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    rule = DebounceRule(
        raise_polls=context.policy.gpu.slowdown_polls,
        of_polls=POLLS,
        clear_polls=2,
        clear_seconds=_QUIET_SECONDS,
    )
    readings: dict[str, float] = {}
    found = []
    for sample in gpus.samples:
        slow = bool((sample.reasons or 0) & mask)
        if (nanoseconds := spent(sample)) is not None:
            seconds = nanoseconds / 1e9
            readings[sample.gpu] = seconds
            slow |= increase(context.past, sample.gpu, seconds) >= SLOWED_PART * EVERY_SECONDS
        if slow:
            found.append(judge(sample, rule))
    return Observation(symptoms=tuple(found), readings=readings)


def _hardware(sample: GpuSample, rule: DebounceRule) -> Symptom:
    why = ", ".join(name for bit, name in _NAMES if (sample.reasons or 0) & bit)
    return Symptom(
        code="slowdown",
        subsystem="thermal",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        gpu=sample.gpu,
        summary="The hardware slows the GPU down because of heat or power.",
        evidence=f"reasons {sample.reasons or 0:#x} ({why or 'by time spent'})",
        rule=rule,
    )


def _software(sample: GpuSample, rule: DebounceRule) -> Symptom:
    return Symptom(
        code="slowdown-sw",
        subsystem="thermal",
        severity=Severity.WARNING,
        action=Action.NONE,
        gpu=sample.gpu,
        summary="The driver slows the GPU down to keep it cool.",
        evidence=f"reasons {sample.reasons or 0:#x}",
        rule=rule,
    )


def observe_temperature(context: CheckContext) -> CheckResult:
    """Find GPUs that are only a few degrees below their slowdown temperature."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    limits = context.policy.gpu
    margins = [(each.gpu, each.margin) for each in gpus.samples if each.margin is not None]
    return Observation(
        symptoms=tuple(
            Symptom(
                code="temperature",
                subsystem="thermal",
                severity=Severity.WARNING,
                action=Action.NONE,
                gpu=gpu,
                summary="The GPU is close to the temperature at which it is slowed down.",
                evidence=f"{margin} degrees Celsius below the slowdown temperature",
                only_holds=margin > limits.margin_celsius,
            )
            for gpu, margin in margins
            if margin <= limits.margin_clear_celsius
        )
    )


HARDWARE_CHECK = Check(
    name="slowdown", about="hardware does not slow GPUs down", observe=observe_hardware, needs_gpus=True
)
SOFTWARE_CHECK = Check(
    name="slowdown-sw", about="the driver does not slow GPUs down", observe=observe_software, needs_gpus=True
)
TEMPERATURE = Check(
    name="temperature",
    about="GPUs are well below their slowdown temperature",
    observe=observe_temperature,
    rule=DebounceRule(raise_polls=3, clear_polls=2, clear_seconds=_QUIET_SECONDS),
    needs_gpus=True,
)
