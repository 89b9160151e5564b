"""gpu-power, gpu-inforom and gpu-persistence: board properties, read every ten minutes (table 1.1)."""

from collections.abc import Callable, Iterator

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import sampled_by_nvml
from checks.gpu_sample import CORRUPTED_INFOROM, SUCCESS, BoardSample, describe

EVERY_SECONDS = 600.0

Judge = Callable[[CheckContext, dict[str, BoardSample]], Iterator[Symptom]]


def judge_power(_: CheckContext, boards: dict[str, BoardSample]) -> Iterator[Symptom]:
    """Find boards whose power limit cannot be read."""
    for gpu, board in boards.items():
        if board.power not in (None, SUCCESS):
            yield _symptom("gpu-power", gpu, "The GPU's power limit cannot be read.", describe(board.power))


def judge_inforom(_: CheckContext, boards: dict[str, BoardSample]) -> Iterator[Symptom]:
    """Find boards whose InfoROM is corrupted."""
    for gpu, board in boards.items():
        if board.inforom == CORRUPTED_INFOROM:
            yield _symptom("gpu-inforom", gpu, "The GPU's InfoROM is corrupted.", describe(board.inforom))


def judge_persistence(context: CheckContext, boards: dict[str, BoardSample]) -> Iterator[Symptom]:
    """Find GPUs with persistence mode off although the policy or the other GPUs have it on."""
    wanted = context.policy.expected.persistence
    if wanted is None:
        wanted = any(board.persistence for board in boards.values())
    for gpu, board in boards.items():
        if wanted and board.persistence is False:
            text = "Persistence mode of the GPU is off: its driver state is lost between jobs."
            yield _symptom("gpu-persistence", gpu, text, "")


def _symptom(code: str, gpu: str, summary: str, evidence: str) -> Symptom:
    return Symptom(
        code=code,
        subsystem="power" if code == "gpu-power" else "gpu",
        severity=Severity.WARNING,
        action=Action.ASK,
        gpu=gpu,
        summary=summary,
        evidence=evidence,
    )


def _check(name: str, about: str, judge: Judge) -> Check:
    def observe(context: CheckContext) -> CheckResult:
        gpus = sampled_by_nvml(context)
        if isinstance(gpus, Unobservable):
            return gpus
        # What is known of a GPU that cannot be read now is old, and other checks report it.
        boards = {each.gpu: each.board for each in gpus.samples if each.board is not None and not each.failed}
        return Observation(symptoms=tuple(judge(context, boards)))

    rule = DebounceRule(raise_polls=3, clear_polls=2)
    return Check(
        name=name, about=about, observe=observe, every_seconds=EVERY_SECONDS, rule=rule, needs_gpus=True
    )


POWER = _check("gpu-power", "power limits of GPUs can be read", judge_power)
INFOROM = _check("gpu-inforom", "the InfoROM of GPUs is intact", judge_inforom)
PERSISTENCE = _check("gpu-persistence", "persistence mode of GPUs is on", judge_persistence)
