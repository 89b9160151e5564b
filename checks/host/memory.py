"""memory and memory-errors: all memory is present, and its errors stay few (table 1.3)."""

import re

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.counters import increase_within
from checks.finding import Action, Severity
from checks.host.files import names, number, text

CONTROLLERS = "sys/devices/system/edac/mc"
"""One directory for each memory controller, with one for each DIMM or rank that counts its errors."""

QUIET_SECONDS = 86_400.0
"""Seconds without errors after which the finding clears (table 1.3)."""

_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)
_CONTROLLER = re.compile(r"mc\d+\Z")
_DIMM = re.compile(r"(?:dimm|rank)\d+\Z")


def observe(context: CheckContext) -> CheckResult:
    """Compare the kernel's memory with the policy."""
    expected = context.policy.expected.memory_gib
    found = _TOTAL.search(text(context.root / "proc/meminfo") or "")
    if found is None:
        return Unobservable("/proc/meminfo cannot be read")
    gib = int(found[1]) / (1 << 20)
    if expected is None or gib >= expected * context.policy.host.memory_percent / 100:
        return Observation()
    return Observation(
        symptoms=(
            Symptom(
                code="memory-missing",
                subsystem="memory",
                severity=Severity.CRITICAL,
                action=Action.FAILOVER,
                summary="The node has less memory than its pool: a DIMM is missing or disabled.",
                evidence=f"{gib:.0f} of {expected:.0f} GiB",
            ),
        )
    )


def observe_errors(context: CheckContext) -> CheckResult:
    """Judge the growth of each DIMM's error counters; totals are never judged (rule T3)."""
    readings: dict[str, float] = {}
    symptoms = []
    for controller in names(context.root / CONTROLLERS) or ():
        if not _CONTROLLER.match(controller):
            continue
        place = context.root / CONTROLLERS / controller
        for dimm in filter(_DIMM.match, names(place) or ()):
            label = text(place / dimm / "dimm_label") or f"{controller} {dimm}"
            for kind in ("ce", "ue"):
                count = number(place / dimm / f"dimm_{kind}_count")
                if count is not None:
                    readings[f"{kind} {label}"] = count
    for name, value in readings.items():
        symptom = _judge(context, name, value)
        if symptom is not None:
            symptoms.append(symptom)
    return Observation(symptoms=tuple(symptoms), readings=readings)


def _judge(context: CheckContext, name: str, value: float) -> Symptom | None:
    kind, label = name.split(" ", 1)
    if kind == "ue":
        # The counter starts at zero with each boot, so whatever it shows happened in this boot.
        return _uncorrected(label, value) if value > 0 else None
    hourly = increase_within(context.past, name, value, context.uptime, 3600.0)
    limit = context.policy.host.memory_corrected_per_hour
    return _corrected(label, hourly, limit) if hourly > limit / 2 else None


def _corrected(label: str, hourly: float, limit: float) -> Symptom:
    return Symptom(
        code="edac-ce-rate",
        subsystem="memory",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=label,
        summary=f"The DIMM {label} has many corrected errors; it may fail.",
        evidence=f"{hourly:.0f} corrected errors in the last hour, {limit:.0f} are normal at most",
        at_once=hourly > limit,
        only_holds=hourly <= limit,
        rule=DebounceRule(clear_seconds=QUIET_SECONDS),
    )


def _uncorrected(label: str, count: float) -> Symptom:
    return Symptom(
        code="edac-ue",
        subsystem="memory",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        device=label,
        summary=f"The DIMM {label} had an uncorrectable error.",
        evidence=f"{count:.0f} uncorrected errors in this boot",
        at_once=True,
        rule=DebounceRule(latched=True),
    )


CHECK = Check(name="memory", about="all of the node's memory is present", observe=observe)

ERRORS = Check(
    name="memory-errors",
    about="memory errors are few and corrected",
    observe=observe_errors,
    remember_seconds=3600.0,
)
