"""nvlink-width and nvlink-errors: links between GPUs that are down or make errors (table 1.1).

The policy says how many links a GPU should have, else the table of boards, else the most that were ever up on
this GPU in this boot: a PCIe card has other links than the SXM board with the same chip. A GPU alone in its
node, as in a small virtual machine, has its links switched off on purpose. Right after a boot links are still
being trained (rule T20).
"""

from collections.abc import Iterator

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.counters import increase, last_reading
from checks.finding import Action, Severity
from checks.gpu.snapshot import GRACE_SECONDS, sampled_by_nvml
from checks.gpu_sample import GpuSample, GpuSnapshot

SXM_LINKS = {
    "10de:20b0": 12,
    "10de:20b2": 12,
    "10de:2330": 18,
    "10de:2335": 18,
    "10de:2901": 18,
}
"""NVLinks by PCI device id (pci.ids): A100 SXM4 40 and 80 GB, H100 SXM5 80 GB, H200 SXM, B200 (table 1.1)."""

SECOND_POLLS = 3
"""Observations in a row with replays or recoveries that raise a finding (table 1.1)."""

EVERY_SECONDS = 60.0

_QUIET = DebounceRule(raise_polls=1, clear_polls=2, clear_seconds=1800.0)
_ROW = DebounceRule(raise_polls=SECOND_POLLS, clear_polls=2, clear_seconds=1800.0)


def observe_width(context: CheckContext) -> CheckResult:
    """Compare the links that are up with those that should be. With MIG on, links are off on purpose."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    judged = [each for each in gpus.samples if each.links_up is not None and not _is_divided(each)]
    readings = {
        each.gpu: max(last_reading(context.past, each.gpu) or 0.0, each.links_up or 0) for each in judged
    }
    found = []
    for sample in judged:
        wanted = _wanted(context, gpus, sample.gpu) or int(readings[sample.gpu])
        if (sample.links_up or 0) < wanted:
            found.append(_fewer(sample, wanted))
    return Observation(symptoms=tuple(found), readings=readings, of=len(judged))


def _is_divided(sample: GpuSample) -> bool:
    return sample.board is not None and bool(sample.board.mig)


def _wanted(context: CheckContext, gpus: GpuSnapshot, gpu: str) -> int | None:
    if context.policy.expected.nvlinks is not None:
        return context.policy.expected.nvlinks
    bus = gpus.bus(gpu)
    return SXM_LINKS.get(bus.device) if bus and gpus.has_peers else None


def _fewer(sample: GpuSample, wanted: int) -> Symptom:
    return Symptom(
        code="nvlink-width",
        subsystem="nvlink",
        severity=Severity.CRITICAL,
        action=Action.RESET_GPU,
        gpu=sample.gpu,
        summary=f"Some of the GPU's {wanted} NVLinks are down.",
        evidence=f"{sample.links_up} of {wanted} up",
    )


def observe_errors(context: CheckContext) -> CheckResult:
    """Judge the growth of error counters since the last observation, and the worst bit error rate."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    readings: dict[str, float] = {}
    for sample in gpus.samples:
        counters = {"crc": sample.link_crc, "again": _again(sample)}
        readings |= {f"{sample.gpu} {name}": float(n) for name, n in counters.items() if n is not None}
    found = tuple(symptom for each in gpus.samples for symptom in _errors(context, each, readings))
    return Observation(symptoms=found, readings=readings)


def _again(sample: GpuSample) -> int | None:
    known = [each for each in (sample.link_replays, sample.link_recoveries) if each is not None]
    return sum(known) if known else None


def _errors(context: CheckContext, sample: GpuSample, readings: dict[str, float]) -> Iterator[Symptom]:
    limits = context.policy.gpu
    gained = {
        name: increase(context.past, f"{sample.gpu} {name}", readings.get(f"{sample.gpu} {name}", 0.0))
        for name in ("crc", "again")
    }
    rate = gained["crc"] / EVERY_SECONDS
    if rate >= limits.nvlink_crc_per_second:
        yield _noisy(sample, "nvlink-crc", "has many checksum errors", f"{rate:.0f} a second")
    if (sample.link_ber or 0.0) > limits.nvlink_bit_error_rate:
        yield _noisy(sample, "nvlink-ber", "has a high bit error rate", f"{sample.link_ber:.1e}")
    if gained["again"]:
        yield Symptom(
            code="nvlink-replay",
            subsystem="nvlink",
            severity=Severity.WARNING,
            action=Action.NONE,
            gpu=sample.gpu,
            summary="An NVLink of the GPU repeats transfers or recovers again and again.",
            evidence=f"{gained['again']:.0f} more since the last observation",
            rule=_ROW,
        )


def _noisy(sample: GpuSample, code: str, text: str, evidence: str) -> Symptom:
    return Symptom(
        code=code,
        subsystem="nvlink",
        severity=Severity.WARNING,
        action=Action.ASK,
        gpu=sample.gpu,
        summary=f"An NVLink of the GPU {text}.",
        evidence=evidence,
    )


WIDTH = Check(
    name="nvlink-width",
    about="all NVLinks are up",
    observe=observe_width,
    rule=DebounceRule(raise_polls=2, clear_polls=2, boot_grace_seconds=GRACE_SECONDS),
    needs_gpus=True,
    remember_seconds=604_800.0,
)
ERRORS = Check(
    name="nvlink-errors",
    about="NVLinks make few errors",
    observe=observe_errors,
    rule=_QUIET,
    needs_gpus=True,
)
