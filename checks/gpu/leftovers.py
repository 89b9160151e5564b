"""leftovers: GPU memory is in use although no program runs, and the next job lacks it (table 1.1).

Three observations a minute apart, with no program on the node in any of them. While there is one, or NVML
does not say how much memory is in use, nothing is found, and an open finding stands.
"""

from collections.abc import Iterator

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import GpuSnapshot

MIB = 1 << 20


def observe(context: CheckContext) -> CheckResult:
    """Judge how much memory is in use without a program."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    return Observation(symptoms=tuple(_leftovers(gpus, context.policy.gpu.leftover_mib)))


def _leftovers(gpus: GpuSnapshot, limit_mib: float) -> Iterator[Symptom]:
    for sample in gpus.samples:
        unknown = sample.memory_used is None
        mib = (sample.memory_used or 0) / MIB
        if unknown or mib > limit_mib:
            yield Symptom(
                code="leftovers",
                subsystem="gpu",
                severity=Severity.WARNING,
                action=Action.ASK,
                gpu=sample.gpu,
                summary="Memory of the GPU is in use although no program has the node's GPUs open: "
                "the next job lacks it.",
                evidence=f"{mib:.0f} MiB in use",
                only_holds=unknown,
            )


CHECK = Check(
    name="leftovers",
    about="memory of GPUs is free when no program uses them",
    observe=observe,
    rule=DebounceRule(raise_polls=3, clear_polls=1),
    needs_gpus=True,
)
