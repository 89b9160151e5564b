"""presence: PCI bus, driver and NVML all show every GPU (table 1.1).

No list is kept from start-up: a GPU that was there and has gone is what this check detects. Driver and NVML
initialise one GPU after another, so they are not judged right after a boot; the bus is (rule T20).
"""

from collections.abc import Iterator

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import GRACE_SECONDS, snapshot_of
from checks.gpu_sample import ABSENT, UNKNOWN, GpuSnapshot, PciGpu
from checks.policy import Expected

_OF_THE_BUS = DebounceRule(raise_polls=2, clear_polls=2)


def observe(context: CheckContext) -> CheckResult:
    """Compare PCI bus, driver and NVML; a GPU that one of them does not show is missing."""
    gpus = snapshot_of(context)
    if isinstance(gpus, Unobservable):
        return gpus
    if gpus.pci is None:
        return Unobservable("the PCI bus cannot be read")
    ours = gpus.ours
    gone = [each.gpu for each in ours if not each.alive]
    found = [*map(_off_bus, gone), *(each for each in _missing(gpus, ours) if each.gpu not in gone)]
    drift = tuple(_unexpected(context.policy.expected, ours))
    return Observation(symptoms=(*found, *drift), of=len(ours) + sum(each.gpu is None for each in drift))


def _missing(gpus: GpuSnapshot, ours: tuple[PciGpu, ...]) -> Iterator[Symptom]:
    """Yield the GPUs that one of the sources that could be read does not show."""
    bus, driver, nvml = frozenset(each.gpu for each in ours), gpus.driver, _nvml_shows(gpus)
    shown = {"the PCI bus": bus}
    if driver is not None:
        shown["the driver"] = frozenset(driver)
    if nvml is not None:
        shown["NVML"] = nvml
    for gpu in sorted(frozenset().union(*shown.values())):
        without = [name for name, theirs in shown.items() if gpu not in theirs]
        if without:
            yield _sick(
                "gpu-missing",
                gpu,
                "A GPU of the node is lost: not every part of the system shows it.",
                f"not shown by {' and '.join(without)}",
            )


def _nvml_shows(gpus: GpuSnapshot) -> frozenset[str] | None:
    """Return the GPUs that NVML shows; None when it never answered, or when it knows none (our own fault)."""
    samples = {each.gpu: each for each in gpus.samples}
    blind = bool(samples) and all(each.failed == UNKNOWN for each in samples.values())
    if blind or (gpus.library is None and not samples):
        return None
    listed = gpus.library.gpus if gpus.library else ()
    # The last sample of an excluded GPU says nothing about now.
    lost = {gpu for gpu, each in samples.items() if each.failed in ABSENT and gpu not in gpus.excluded}
    return frozenset((*listed, *samples, *gpus.excluded)) - lost


def _unexpected(expected: Expected, ours: tuple[PciGpu, ...]) -> Iterator[Symptom]:
    if expected.gpus is not None and len(ours) != expected.gpus:
        fewer = len(ours) < expected.gpus
        yield Symptom(
            code="gpu-count",
            subsystem="presence",
            severity=Severity.CRITICAL if fewer else Severity.WARNING,
            action=Action.FAILOVER if fewer else Action.ASK,
            summary=f"The node's PCI bus does not show the {expected.gpus} GPUs that a node of its pool has.",
            evidence=f"{len(ours)} on the PCI bus",
            rule=_OF_THE_BUS,
        )
    for each in ours:
        kinds = ((expected.gpu_device, each.device), (expected.gpu_board, each.board))
        wrong = [f"{shows}, not {wanted}" for wanted, shows in kinds if wanted not in (None, shows)]
        if wrong:
            yield Symptom(
                code="gpu-model",
                subsystem="presence",
                severity=Severity.WARNING,
                action=Action.ASK,
                gpu=each.gpu,
                summary="The GPU is not of the model that nodes of this pool have.",
                evidence="; ".join(wrong),
                rule=_OF_THE_BUS,
            )


def _off_bus(gpu: str) -> Symptom:
    text = "The GPU has left the PCI bus: its configuration space does not answer."
    return _sick("gpu-off-bus", gpu, text, "vendor id reads ffff", at_once=True)


def _sick(code: str, gpu: str, summary: str, evidence: str, *, at_once: bool = False) -> Symptom:
    return Symptom(
        code=code,
        subsystem="presence",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        gpu=gpu,
        summary=summary,
        evidence=evidence,
        at_once=at_once,
    )


CHECK = Check(
    name="presence",
    about="PCI bus, driver and NVML show the same GPUs, and as many as expected",
    observe=observe,
    rule=DebounceRule(raise_polls=2, clear_polls=2, boot_grace_seconds=GRACE_SECONDS),
    needs_gpus=True,
)
