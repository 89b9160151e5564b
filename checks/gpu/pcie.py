"""pcie-link and pcie-replay: the GPU's PCIe link is narrow, slow or noisy (table 1.1).

The policy says what a slot can do, else the best that it and GPUs of the same kind have shown in this boot.
An idle GPU lowers its link's generation, so the generation of a busy GPU only is judged.
"""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.counters import increase_within, last_reading, watched_seconds
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import GpuSample, PciGpu

GENERATIONS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)
"""Link speed in GT/s of generations 1 to 6 (PCI Express base specification)."""

IDLE = 0x1
"""Bit of the slowdown reasons: the GPU is idle (nvml.h, nvmlClocksEventReasonGpuIdle)."""

WINDOW_SECONDS = 600.0
"""Time over which replays are counted (table 1.1)."""


def observe_link(context: CheckContext) -> CheckResult:
    """Compare each link's width and generation with the best known for it."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    busy = {each.gpu for each in gpus.samples if each.reasons is not None and not each.reasons & IDLE}
    links = {each.gpu: each for each in gpus.pci or () if each.alive and each.width and each.is_ours}
    readings: dict[str, float] = {}
    for gpu, link in links.items():
        for name, value in (("width", link.width), ("generation", generation(link))):
            best = f"{gpu} {name}"
            readings[best] = max(last_reading(context.past, best) or 0.0, value or 0)
    found = []
    for gpu, link in links.items():
        width, speed = _best(context, readings, links, link)
        slow = gpu in busy and (generation(link) or speed) < speed
        if (link.width or 0) < width or slow:
            found.append(_lower(link, width, speed))
    return Observation(symptoms=tuple(found), readings=readings)


def generation(link: PciGpu) -> int | None:
    """Return the generation of a link's speed, None when it is not known."""
    return GENERATIONS.index(link.speed) + 1 if link.speed in GENERATIONS else None


def _best(
    context: CheckContext, readings: dict[str, float], links: dict[str, PciGpu], link: PciGpu
) -> tuple[int, int]:
    expected = context.policy.expected
    alike = [gpu for gpu, each in links.items() if (each.device, each.board) == (link.device, link.board)]
    width = expected.pcie_width or max(readings[f"{gpu} width"] for gpu in alike)
    speed = expected.pcie_generation or max(readings[f"{gpu} generation"] for gpu in alike)
    return int(width), int(speed)


def _lower(link: PciGpu, width: int, speed: int) -> Symptom:
    return Symptom(
        code="pcie-link",
        subsystem="pcie",
        severity=Severity.WARNING,
        action=Action.ASK,
        gpu=link.gpu,
        summary=f"The GPU's PCIe link is below its x{width} generation {speed}.",
        evidence=f"x{link.width} generation {generation(link)}",
    )


def observe_replay(context: CheckContext) -> CheckResult:
    """Judge how many transfers each link repeats per minute and lane."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    totals = {each.gpu: each.pcie_replays for each in gpus.samples if each.pcie_replays is not None}
    readings = {gpu: float(total) for gpu, total in totals.items()}
    for gpu in totals:
        link = gpus.bus(gpu)
        best = f"{gpu} generation"
        readings[best] = max(last_reading(context.past, best) or 0.0, (link and generation(link)) or 0)
    found = (_replays(context, each, gpus.bus(each.gpu), readings) for each in gpus.samples)
    return Observation(symptoms=tuple(filter(None, found)), readings=readings)


def _replays(
    context: CheckContext, sample: GpuSample, link: PciGpu | None, readings: dict[str, float]
) -> Symptom | None:
    known = int(readings.get(f"{sample.gpu} generation", 0))
    watched = watched_seconds(context.past, sample.gpu, context.uptime)
    if not known or not link or not link.width or watched < WINDOW_SECONDS:
        return None
    limits = context.policy.gpu
    gained = increase_within(context.past, sample.gpu, readings[sample.gpu], context.uptime, WINDOW_SECONDS)
    rate = gained / (WINDOW_SECONDS / 60.0) / link.width
    limit = limits.pcie_replays_per_minute[min(known, len(limits.pcie_replays_per_minute)) - 1]
    if rate <= limit:
        return None
    critical = rate > limit * limits.pcie_replay_critical_factor
    return Symptom(
        code="pcie-replay",
        subsystem="pcie",
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        action=Action.FAILOVER if critical else Action.ASK,
        gpu=sample.gpu,
        summary="The GPU's PCIe link repeats many transfers: slot, riser or cable may be bad.",
        evidence=f"{rate:.2f} per minute and lane; {limit:g} is the limit of generation {known}",
    )


LINK = Check(
    name="pcie-link",
    about="GPUs have their full PCIe link",
    observe=observe_link,
    rule=DebounceRule(raise_polls=3, clear_polls=2),
    needs_gpus=True,
    remember_seconds=604_800.0,
)
REPLAY = Check(
    name="pcie-replay",
    about="PCIe links of GPUs repeat few transfers",
    observe=observe_replay,
    rule=DebounceRule(raise_polls=1, clear_polls=2, clear_seconds=1800.0),
    needs_gpus=True,
)
