"""What the GPU checks look at: the newest `Gpus`, and what each of them has in common with its neighbours."""

from checks.check import Blind, Past, Scene
from checks.gpu_sample import Gpus

NOT_ASKED = Blind("NVML has not told of any GPU yet", told=True)
"""A look without a sample. That NVML does not answer is told by nvml-unavailable and driver-unresponsive."""

GRACE_SECONDS = 300.0
"""Uptime before which NVML and fabric are not judged (rule T20)."""


def sampled(scene: Scene) -> Gpus | Blind:
    """Return the GPUs when NVML has told of them, or when there are none; else why one cannot look."""
    gpus = scene.held(Gpus)
    if not isinstance(gpus, Gpus):
        return gpus or NOT_ASKED
    return gpus if gpus.samples or not gpus.ours else NOT_ASKED


def newest(past: Past, name: str) -> float | None:
    """Return what the last look has read under `name`."""
    readings = past.get(name, ())
    return readings[-1][1] if readings else None


def step(past: Past, name: str, value: float) -> float:
    """Return by how much a counter has grown since the last look; one that went back began anew at 0."""
    before = newest(past, name)
    if before is None:
        return 0.0
    return value - before if value >= before else value
