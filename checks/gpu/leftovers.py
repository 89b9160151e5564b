"""leftovers: memory of a GPU is in use though no program is there, and the next job lacks it (table 1.1).

Three looks a minute apart, with no program on the node in any of them. While there is one, or NVML does not
say how much is in use, nothing is found, and what was found stands.
"""

from collections.abc import Iterator

from checks.check import Blind, Check, Look, Rule, Scene, Seen, Symptom
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled
from checks.gpu_sample import Gpus

MIB = 1 << 20


def look(scene: Scene) -> Look:
    """Judge how much memory is in use without a program."""
    gpus = sampled(scene)
    if isinstance(gpus, Blind):
        return gpus
    return Seen(symptoms=tuple(_leftovers(gpus, scene.policy.gpu.leftover_mib)))


def _leftovers(gpus: Gpus, limit_mib: float) -> Iterator[Symptom]:
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
                summary="Memory of the GPU is in use though no program has the node's GPUs open: "
                "the next job lacks it.",
                evidence=f"{mib:.0f} MiB in use",
                only_holds=unknown,
            )


CHECK = Check(
    name="leftovers",
    about="memory of GPUs is free when no program uses them",
    look=look,
    rule=Rule(raise_polls=3, clear_polls=1),
    needs=Gpus,
)
