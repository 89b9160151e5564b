"""Check: one observation of one part of the node, and the rule that turns observations into a finding.

An observation says what is wrong at this moment and nothing more. `checks.debounce` follows observations over
time. A check that could not observe returns `Unobservable`, which counts neither as healthy nor as sick.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from checks.counters import Past
from checks.finding import Action, Severity
from checks.gpu_sample import GpuSnapshot
from checks.policy import Policy


class DebounceRule(msgspec.Struct, frozen=True, kw_only=True):
    """When observations raise a finding and when they clear it.

    A finding is raised when at least `raise_polls` of the last `of_polls` observations saw the symptom (0: in
    a row) and it has lasted for `raise_seconds` without a break. It clears after `clear_polls` observations
    in a row and `clear_seconds` without it; a `latched` one clears only with another boot. Nothing is raised
    in the first `boot_grace_seconds` of uptime.
    """

    raise_polls: int = 2
    of_polls: int = 0
    raise_seconds: float = 0.0
    clear_polls: int = 2
    clear_seconds: float = 0.0
    boot_grace_seconds: float = 0.0
    latched: bool = False


class Escalation(msgspec.Struct, frozen=True):
    """What a symptom becomes once it has lasted for `after_seconds` without a break."""

    after_seconds: float
    severity: Severity
    action: Action


class Symptom(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an observation found wrong.

    `gpu` and `device` tell faults apart as in a finding. `at_once` raises a finding without a second
    observation. `only_holds` is too little to raise a finding and too much to clear one (between two
    thresholds). `escalation` is what the symptom becomes when it lasts. `rule` replaces the check's rule.
    `summary` is for people and stays the same for as long as the fault does; figures belong in `evidence`.
    """

    code: str
    subsystem: str
    severity: Severity
    action: Action
    gpu: str | None = None
    device: str | None = None
    summary: str
    evidence: str = ""
    at_once: bool = False
    only_holds: bool = False
    escalation: Escalation | None = None
    rule: DebounceRule | None = None

    @property
    def key(self) -> str:
        """Identity among the symptoms of one check."""
        return "/".join((self.code, self.gpu or "", self.device or ""))


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What a check saw: the symptoms, none when all is well.

    Later runs of this check get `readings` (counters and states) back as `CheckContext.past`. `of` is the
    number of devices observed: when every one of several is sick at once, the way they are read is at fault
    (rule T12).
    """

    symptoms: tuple[Symptom, ...] = ()
    readings: Mapping[str, float] = {}
    of: int = 0


class Unobservable(msgspec.Struct, frozen=True):
    """The check could not observe, and why.

    `reported_elsewhere` means that another check reports the reason: findings stay, and nothing is added.
    """

    reason: str
    reported_elsewhere: bool = False


CheckResult = Observation | Unobservable

WELL = Observation()
"""An observation that found nothing wrong."""


class NodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent knows about the node besides its files.

    `gpus` is the newest sample of all GPUs, why there is none, or None before the first one.
    `previous_boot_id` is the boot before this one, empty when unknown. `repair_ended_previous_boot` says
    whether one of our repairs ended it, None while the bot has not told in this boot. `bot_url` is where the
    agent reports to, empty without an agent. NVML must not be asked about the GPUs in `excluded_gpus`.
    `memory_suspects` maps a GPU to the uptime in seconds of its newest uncorrectable memory error.
    """

    gpus: GpuSnapshot | Unobservable | None = None
    previous_boot_id: str = ""
    repair_ended_previous_boot: bool | None = None
    bot_url: str = ""
    excluded_gpus: frozenset[str] = frozenset()
    memory_suspects: Mapping[str, float] = {}


class CheckContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a check may look at.

    `root` is where the node's file system is mounted. `now` is Unix seconds, `uptime` seconds since boot.
    `past` is what this check read earlier, `facts` what the agent knows besides the node's files.
    """

    root: Path
    now: float
    uptime: float
    policy: Policy
    past: Past = {}
    facts: NodeFacts = NodeFacts()


class CheckDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What a check is called, how often it runs, and how its observations become findings.

    `about` is one line for people. Readings are remembered for `remember_seconds`. `all_code` is the code of
    the finding that every device is sick at once (`Observation.of`).
    """

    name: str
    about: str
    every_seconds: float = 60.0
    rule: DebounceRule = DebounceRule()
    remember_seconds: float = 3600.0
    all_code: str = ""


class Check(CheckDefinition, frozen=True, kw_only=True):
    """A check of the node.

    `needs_gpus` means that it judges `NodeFacts.gpus` and cannot observe without it. `needs_agent` means that
    only a running agent knows what it judges, so that a single run has nothing to say.
    """

    observe: Callable[[CheckContext], CheckResult]
    needs_gpus: bool = False
    needs_agent: bool = False


def run_check(check: Check, context: CheckContext) -> CheckResult:
    """Return what the check observes; a fault of its own means that it could not observe, never health."""
    if check.needs_gpus and not isinstance(context.facts.gpus, GpuSnapshot):
        return context.facts.gpus or Unobservable("the GPUs have not been sampled yet")
    try:
        return check.observe(context)
    except Exception as error:  # noqa: BLE001 - a check that fails is blind, and the others go on
        return failed(error)


def failed(error: Exception) -> Unobservable:
    """Return that an error made an observation impossible, with the place in our code that raised it."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "nowhere"
    return Unobservable(f"{type(error).__name__}: {error} ({where})")
