"""nvml-unavailable: the PCI bus shows GPUs, and NVML cannot be opened (table 1.1).

A fault in our own access to NVML (no library in our container, no permission, a device cgroup lost after a
systemd reload) is a blind spot of the agent and no fault of a GPU. A GPU that NVML cannot read for a reason
that no other check judges goes to a person (rule T10).
"""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import GRACE_SECONDS, snapshot_of
from checks.gpu_sample import (
    ABSENT,
    ENDED,
    LIBRARY_NOT_FOUND,
    MISMATCH,
    NO_PERMISSION,
    RESET_REQUIRED,
    SKIPPED,
    SUCCESS,
    UNKNOWN,
    GpuSample,
    NvmlRefused,
    describe,
)

_OURS = {
    NO_PERMISSION: "The agent has no permission to query the GPUs through NVML.",
    LIBRARY_NOT_FOUND: "The agent's container has no NVML library; run it with NVIDIA's container runtime.",
    UNKNOWN: "NVML finds none of the driver's GPUs: the agent's container has lost access to their devices; "
    "restart its pod.",
    ENDED: "The process that queries NVML ends in the middle of a call.",
}

_JUDGED = frozenset({SUCCESS, NO_PERMISSION, RESET_REQUIRED, *ABSENT, *SKIPPED})
"""Return codes of a GPU that are harmless, or that this check, presence or recovery-action judges."""


def observe(context: CheckContext) -> CheckResult:
    """Judge why the library could not be opened."""
    gpus = snapshot_of(context)
    if isinstance(gpus, Unobservable):
        return gpus
    found: list[Symptom] = []
    if gpus.ours and gpus.library is None and gpus.refused is not None:
        found.append(_judge(gpus.refused, has_driver=gpus.driver is not None))
    asked = [each for each in gpus.samples if each.gpu not in gpus.excluded]
    denied = [
        each.gpu for each in asked if NO_PERMISSION in (each.failed, *(code for _, code in each.denied))
    ]
    if denied and not found:
        found.append(_blind(_OURS[NO_PERMISSION], f"denied for {', '.join(sorted(denied))}"))
    return Observation(
        symptoms=(*found, *(_unreadable(each) for each in asked if each.failed not in _JUDGED))
    )


def _unreadable(sample: GpuSample) -> Symptom:
    return Symptom(
        code="gpu-unreadable",
        subsystem="nvml",
        severity=Severity.UNKNOWN,
        action=Action.ASK,
        gpu=sample.gpu,
        summary="NVML cannot read the GPU, and the reason is unknown.",
        evidence=describe(sample.failed),
    )


def _judge(refused: NvmlRefused, *, has_driver: bool) -> Symptom:
    evidence = f"{refused.call}: {describe(refused.code)}"
    if refused.code in _OURS and has_driver:
        return _blind(_OURS[refused.code], evidence)
    if refused.code == MISMATCH:
        code = "driver-mismatch"
        summary = "NVML and the loaded kernel driver are of different versions: no new job can use the GPUs."
    else:
        code = "nvml-unavailable"
        summary = "The node has NVIDIA GPUs, and NVML cannot be opened: no new job can use them."
    return Symptom(
        code=code,
        subsystem="nvml",
        severity=Severity.CRITICAL,
        action=Action.ASK,
        summary=summary,
        evidence=evidence,
    )


def _blind(summary: str, evidence: str) -> Symptom:
    return Symptom(
        code="nvml-blind",
        subsystem="agent",
        severity=Severity.WARNING,
        action=Action.ASK,
        summary=summary,
        evidence=evidence,
    )


CHECK = Check(
    name="nvml-unavailable",
    about="NVML can be opened on a node with GPUs",
    observe=observe,
    rule=DebounceRule(raise_polls=2, clear_polls=1, boot_grace_seconds=GRACE_SECONDS),
    needs_gpus=True,
)
