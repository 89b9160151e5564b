"""fabric: every GPU has joined the NVLink fabric, where the board has one (table 1.1, rule T19).

A clique of 0 is normal inside one node: GPUs of an HGX H100 show it with a cluster id of zeros. The clique is
judged only where the fabric spans nodes, which gives it a cluster id.
"""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.gpu.snapshot import GRACE_SECONDS, sampled_by_nvml
from checks.gpu_sample import FabricSample, GpuSample, GpuSnapshot

NOT_SUPPORTED, COMPLETED = 0, 3
"""States (nvml.h, nvmlGpuFabricState_t). Between them lie "not started" and "in progress"."""

FABRIC_DEVICES = frozenset({"10de:2901", "10de:2941", "10de:3182", "10de:31c2"})
"""GPUs that always have a fabric, though their switches are not NVIDIA functions on the node's PCI bus
(pci.ids): B200, GB200, B300, GB300."""

_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}


def observe(context: CheckContext) -> CheckResult:
    """Judge each GPU's fabric state, status and clique."""
    gpus = sampled_by_nvml(context)
    if isinstance(gpus, Unobservable):
        return gpus
    found = []
    for sample in gpus.samples:
        required = context.policy.expected.fabric
        wanted = _has_fabric(gpus, sample) if required is None else required
        if wanted and sample.fabric is not None and not _is_good(sample.fabric, required=bool(required)):
            found.append(_symptom(sample.gpu, sample.fabric))
    return Observation(symptoms=tuple(found))


def _has_fabric(gpus: GpuSnapshot, sample: GpuSample) -> bool:
    bus = gpus.bus(sample.gpu)
    return bool(gpus.switches) or (bus is not None and gpus.has_peers and bus.device in FABRIC_DEVICES)


def _is_good(fabric: FabricSample, *, required: bool) -> bool:
    if fabric.state == NOT_SUPPORTED:
        return not required
    joined = fabric.state == COMPLETED and fabric.status == 0
    return joined and not (fabric.multinode and fabric.clique == 0)


def _symptom(gpu: str, fabric: FabricSample) -> Symptom:
    state = _STATES.get(fabric.state, str(fabric.state))
    return Symptom(
        code="fabric",
        subsystem="fabric",
        severity=Severity.CRITICAL,
        action=Action.ASK,
        gpu=gpu,
        summary="The GPU has not joined the NVLink fabric: jobs that use several GPUs cannot start.",
        evidence=f"state {state}, status {fabric.status}, clique {fabric.clique}; is the fabric manager up?",
    )


CHECK = Check(
    name="fabric",
    about="GPUs have joined the NVLink fabric",
    observe=observe,
    rule=DebounceRule(raise_polls=2, clear_polls=2, boot_grace_seconds=GRACE_SECONDS),
    needs_gpus=True,
)
