"""What every GPU check starts from: the newest sample of all GPUs, or why there is none."""

from checks.check import CheckContext, Unobservable
from checks.gpu_sample import GpuSnapshot

NOT_SAMPLED = Unobservable("NVML has not returned any GPU yet", reported_elsewhere=True)
"""A check without a sample. nvml-unavailable and driver-unresponsive report that NVML does not answer."""

GRACE_SECONDS = 300.0
"""Uptime before which NVML and fabric are not judged (rule T20)."""


def snapshot_of(context: CheckContext) -> GpuSnapshot | Unobservable:
    """Return the newest snapshot, also when NVML has not answered; why there is none otherwise."""
    return context.facts.gpus or NOT_SAMPLED


def sampled_by_nvml(context: CheckContext) -> GpuSnapshot | Unobservable:
    """Return the newest snapshot once NVML has returned GPUs, or when there are none; why not otherwise."""
    gpus = snapshot_of(context)
    if isinstance(gpus, Unobservable):
        return gpus
    return gpus if gpus.samples or not gpus.ours else NOT_SAMPLED
