"""recovery-action: the recovery that the driver itself asks for, NVML field 230 (table 3.3)."""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import RESET_REQUIRED, GpuSample, GpuSnapshot
from checks.kernel.parse.xid import RECOVERY_BY_NUMBER, RECOVERY_UNREADABLE, RecoveryRequest

_REQUESTS = {
    1: "The driver asks for a reset of this GPU.",
    2: "The driver asks for a reboot of the node.",
    3: "The driver asks for peer-to-peer traffic with this GPU to be drained.",
    4: "The driver asks for a reset of this GPU after its running jobs have ended.",
}
"""What the driver asks for, by number of the recovery action; 0 is none."""


def observe(context: CheckContext) -> CheckResult:
    """Judge each GPU's recovery action, and calls that the driver refused because a reset is due."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    return Observation(symptoms=tuple(filter(None, map(_judge, gpus.samples))))


def recovery_requests(gpus: GpuSnapshot) -> dict[str, RecoveryRequest]:
    """Return what the driver asks for, by GPU; GPUs without an answer are left out."""
    return {
        each.gpu: RecoveryRequest(each.recovery_action, each.asked_at)
        for each in gpus.samples
        if not each.failed and each.recovery_action is not None
    }


def _judge(sample: GpuSample) -> Symptom | None:
    wanted = sample.recovery_action
    if wanted:
        # A number that the table does not have must not read as "none": a person looks at it.
        verdict = RECOVERY_BY_NUMBER.get(wanted, RECOVERY_UNREADABLE)
        text = _REQUESTS.get(wanted, f"The driver asks for an unknown recovery action, number {wanted}.")
        return _symptom(sample, verdict.severity, verdict.action, text)
    refused = sample.failed == RESET_REQUIRED or any(code == RESET_REQUIRED for _, code in sample.denied)
    if refused:
        text = "The driver refuses calls to this GPU until it is reset."
        return _symptom(sample, Severity.CRITICAL, Action.RESET_GPU, text)
    return None


def _symptom(sample: GpuSample, severity: Severity, action: Action, summary: str) -> Symptom:
    return Symptom(
        code="recovery-action",
        subsystem="recovery",
        severity=severity,
        action=action,
        gpu=sample.gpu,
        summary=summary,
        evidence=f"NVML field 230: {sample.recovery_action}",
    )


CHECK = Check(
    name="recovery-action",
    about="the driver asks for no reset, reboot or drain",
    observe=observe,
    rule=DebounceRule(raise_polls=2, clear_polls=2),
    needs_gpus=True,
)
