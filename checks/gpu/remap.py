"""remap-pending, remap-failure, remap-many and retired-pages: how the GPU replaces bad memory (table 1.1)."""

from collections.abc import Callable

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import GpuSample
from checks.policy import GpuLimits

Judge = Callable[[GpuSample, GpuLimits], Symptom | None]


def judge_pending(sample: GpuSample, _: GpuLimits) -> Symptom | None:
    """Return that bad rows wait to be replaced by the next reset."""
    if not sample.remap_pending:
        return None
    summary = "Bad memory rows of the GPU will be replaced at its next reset; reset it once it is drained."
    return _symptom(sample, "remap-pending", summary, (Severity.WARNING, Action.RESET_GPU))


def judge_failure(sample: GpuSample, _: GpuLimits) -> Symptom | None:
    """Return that bad rows could not be replaced: no spare rows are left, and a reboot adds none."""
    if not sample.remap_failure:
        return None
    summary = "The GPU has no spare rows left for bad memory: replace the board."
    return _symptom(sample, "remap-failure", summary, (Severity.CRITICAL, Action.FAILOVER))


def judge_many(sample: GpuSample, limits: GpuLimits) -> Symptom | None:
    """Return that many rows were replaced because of uncorrectable errors."""
    if sample.remapped_rows is None or sample.remapped_rows < limits.remapped_rows:
        return None
    summary = "Many memory rows of the GPU have been replaced: plan to replace the board."
    return _symptom(sample, "remap-many", summary, (Severity.WARNING, Action.ASK))


def judge_retired(sample: GpuSample, limits: GpuLimits) -> Symptom | None:
    """Return that pages of a GPU older than Ampere wait for retirement, or that many are retired."""
    pages = sample.retired_pages or 0
    if not sample.retired_pending and pages < limits.retired_pages:
        return None
    summary = "Memory pages of the GPU are being retired; a reset retires the pending ones."
    return _symptom(sample, "retired-pages", summary, (Severity.WARNING, Action.ASK))


def _symptom(sample: GpuSample, code: str, summary: str, verdict: tuple[Severity, Action]) -> Symptom:
    return Symptom(
        code=code,
        subsystem="ecc",
        severity=verdict[0],
        action=verdict[1],
        gpu=sample.gpu,
        summary=summary,
        evidence=f"remapped rows {sample.remapped_rows}, retired pages {sample.retired_pages}",
    )


def _check(name: str, about: str, judge: Judge) -> Check:
    def observe(context: CheckContext) -> CheckResult:
        gpus = sampled_by_nvml(context)
        if isinstance(gpus, Unobservable):
            return gpus
        return Observation(
            symptoms=tuple(filter(None, (judge(each, context.policy.gpu) for each in gpus.samples)))
        )

    return Check(
        name=name,
        about=about,
        observe=observe,
        rule=DebounceRule(raise_polls=2, clear_polls=2),
        needs_gpus=True,
    )


PENDING = _check("remap-pending", "no memory rows wait to be replaced", judge_pending)
FAILURE = _check("remap-failure", "bad memory rows could be replaced", judge_failure)
MANY = _check("remap-many", "few memory rows had to be replaced", judge_many)
RETIRED = _check("retired-pages", "few memory pages had to be retired (before Ampere)", judge_retired)
