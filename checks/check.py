"""Check: one look at one thing of the node, and the rule by which looks become a finding.

A look says what is wrong at this moment and nothing more; `checks.debounce` folds looks over time. A look that
was not possible is `Blind`, which reads neither as healthy nor as sick.
"""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from checks.finding import Action, Severity
from checks.policy import Policy

Reading = tuple[float, float]
"""Seconds since boot and the value read then."""

Past = Mapping[str, tuple[Reading, ...]]
"""What earlier looks of a check read, by name: the first value, then one entry a change, oldest first."""

Held = TypeVar("Held")


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When looks raise a finding and when they clear it.

    Raised when at least `raise_polls` of the last `of_polls` looks saw it (0: in a row), and it has been seen
    for `raise_seconds` without a break. Cleared after `clear_polls` looks in a row and `clear_seconds`
    without it; a `latched` one only by another boot. Nothing is raised in the first `boot_grace_seconds` of
    uptime.
    """

    raise_polls: int = 2
    of_polls: int = 0
    raise_seconds: float = 0.0
    clear_polls: int = 2
    clear_seconds: float = 0.0
    boot_grace_seconds: float = 0.0
    latched: bool = False


class Worse(msgspec.Struct, frozen=True):
    """What a symptom becomes once it has been seen for `after_seconds` without a break."""

    after_seconds: float
    severity: Severity
    action: Action


class Symptom(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a look found wrong.

    `gpu` and `device` tell faults apart as in a finding. `at_once` needs no second look. `only_holds` is too
    little to raise a finding and too much to clear one (between two thresholds). `worse` is what it becomes
    when it lasts, `rule` replaces the check's rule. `summary` is for people and stays the same for as long as
    the fault does; figures belong into `evidence`.
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
    worse: Worse | None = None
    rule: Rule | None = None

    @property
    def key(self) -> str:
        """Identity among the symptoms of one check."""
        return "/".join((self.code, self.gpu or "", self.device or ""))


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found: the symptoms, none when all is well.

    `readings` are counters and states that later looks of this check get back as `Scene.past`. `of` is how
    many devices were looked at: when every one of several is sick at once, that is reader trouble (rule T12).
    """

    symptoms: tuple[Symptom, ...] = ()
    readings: Mapping[str, float] = {}
    of: int = 0


class Blind(msgspec.Struct, frozen=True):
    """The look was not possible, and why.

    `told` when another check tells of it: what was raised stays, and nothing is added.
    """

    reason: str
    told: bool = False


Look = Seen | Blind

WELL = Seen()
"""A look that found nothing wrong."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What a look may look at.

    `root` is where the node's file system is, `now` Unix seconds, `uptime` seconds since boot. `past` is this
    check's own memory, `fetched` what the doors brought last, by its type.
    """

    root: Path
    now: float
    uptime: float
    policy: Policy
    past: Past = {}
    fetched: Mapping[type, Any] = {}

    def held(self, kind: type[Held]) -> Held | Blind | None:
        """Return what the door that gives `kind` brought last, why it could not, None before its first."""
        found = self.fetched.get(kind)
        return found if found is None or isinstance(found, (kind, Blind)) else None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check: a name, how often it looks, the rule for what it sees, and the look itself.

    `about` is one line for people. `needs` is what a door has to have fetched. Readings are remembered for
    `remember_seconds`. `all_code` names the finding of every device at once (`Seen.of`).
    """

    name: str
    about: str
    look: Callable[[Scene], Look]
    every_seconds: float = 60.0
    rule: Rule = Rule()
    needs: type | None = None
    remember_seconds: float = 3600.0
    all_code: str = ""


class Door(Protocol):
    """Fetches something that several checks look at, such as one sample of every GPU.

    `fetch` returns a `gives`, or Blind; it ends by itself within its own deadline. `scene.fetched` holds what
    it brought before. `close` ends what it keeps open.
    """

    gives: type
    every_seconds: float

    def fetch(self, scene: Scene) -> object:
        """Return what is there now."""

    def close(self) -> None:
        """Let go of everything."""


def grown(past: Past, name: str, value: float, uptime: float, seconds: float) -> float:
    """Return by how much a counter has grown in the last `seconds`, `value` being what it shows now.

    A counter that went back began anew at 0. The first reading ever is no growth (rule T3).
    """
    readings = past.get(name, ())
    before = [each for at, each in readings if at < uptime - seconds][-1:]
    chain = [*before, *(each for at, each in readings if at >= uptime - seconds), value]
    return sum(new - old if new >= old else new for old, new in itertools.pairwise(chain))


def watched_seconds(past: Past, name: str, uptime: float) -> float:
    """Return for how long the counter has been read, 0 before its first reading."""
    readings = past.get(name, ())
    return uptime - readings[0][0] if readings else 0.0
