"""Debounce: observations over time → findings, and blind spots where observations are not possible.

One observation proves nothing (rule T12). Every time span is measured on the clock that counts from boot, so
a wall clock that jumps neither raises nor clears anything; wall time is only what a finding shows.
"""

from collections.abc import Iterator

import msgspec

from checks.check import (
    CheckDefinition,
    CheckResult,
    DebounceRule,
    Escalation,
    Observation,
    Symptom,
    Unobservable,
)
from checks.counters import Past, Reading
from checks.finding import EVIDENCE_LIMIT, Action, Finding, Severity

MISSES = 3
"""Observations in a row that were not possible, until the check counts as blind (rule T12)."""

READINGS_LIMIT = 512
"""Readings remembered under one name; beyond it the oldest are forgotten."""

LAST_SEEN_STEP_SECONDS = 600.0
"""How exactly `last_seen` is reported (ours): a fault that lasts stays the same finding, byte for byte."""

EARLY_PART = 0.5
"""An observation within this part of its interval after the one before, as after a restart, is a repeat."""

_POLLS = 64


class Instant(msgspec.Struct, frozen=True):
    """One point in time on both clocks: `wall` in Unix seconds, `uptime` in seconds since boot."""

    wall: float
    uptime: float


class SymptomTrack(msgspec.Struct):
    """One symptom over time. `polls` holds the last observations as bits, the newest lowest.

    Times ending in `_since` are seconds since boot; `first_seen` and `last_seen` are Unix seconds.
    """

    symptom: Symptom
    polls: int = 0
    row_since: float | None = None
    quiet_since: float | None = None
    quiet_polls: int = 0
    raised: bool = False
    escalated: bool = False
    first_seen: float = 0.0
    last_seen: float = 0.0


class CheckMemory(msgspec.Struct):
    """What is remembered of one check; `observed_at` is the uptime of its last run."""

    tracks: dict[str, SymptomTrack] = {}
    readings: dict[str, list[Reading]] = {}
    misses: int = 0
    reason: str = ""
    blind_since: float = 0.0
    observed_at: float | None = None


class Debouncer:
    """The findings of several checks in one boot. `memory` is its whole state, to be saved and restored."""

    def __init__(self, memory: dict[str, CheckMemory] | None = None) -> None:
        self.memory = memory if memory is not None else {}

    def past(self, check: str) -> Past:
        """Return what `check` read earlier."""
        memory = self.memory.get(check)
        return {} if memory is None else {name: tuple(each) for name, each in memory.readings.items()}

    def is_early(self, check: CheckDefinition, at: Instant) -> bool:
        """Whether `check` ran so shortly before that another run is a repeat."""
        memory = self.memory.get(check.name)
        if memory is None or memory.observed_at is None:
            return False
        return 0 <= at.uptime - memory.observed_at < EARLY_PART * check.every_seconds

    def record(self, check: CheckDefinition, result: CheckResult, at: Instant) -> bool:
        """Record one result; return whether findings or blind spots came, went or got another verdict."""
        memory = self.memory.setdefault(check.name, CheckMemory())
        memory.observed_at = at.uptime
        if isinstance(result, Unobservable):
            return False if result.reported_elsewhere else _miss(memory, result, at)
        was_blind = memory.misses >= MISSES
        memory.misses = 0
        _remember(memory, result, at, check.remember_seconds)
        symptoms = {each.key: each for each in _believable(check, result, memory)}
        for key, symptom in symptoms.items():
            if symptom.at_once or at.uptime >= (symptom.rule or check.rule).boot_grace_seconds:
                memory.tracks.setdefault(key, SymptomTrack(symptom))
        changed = [_follow(track, symptoms.get(key), check.rule, at) for key, track in memory.tracks.items()]
        memory.tracks = {key: each for key, each in memory.tracks.items() if each.raised or each.polls}
        return was_blind or any(changed)

    def drop(self, check: str) -> bool:
        """Forget a check that was switched off; return whether it had findings or was blind."""
        memory = self.memory.pop(check, None)
        return memory is not None and (
            memory.misses >= MISSES or any(each.raised for each in memory.tracks.values())
        )

    def findings(self) -> Iterator[Finding]:
        """Return what is wrong now."""
        for check, memory in self.memory.items():
            for track in memory.tracks.values():
                if track.raised:
                    yield _finding(check, track)

    def blind_spots(self) -> Iterator[Finding]:
        """Return the checks that cannot observe."""
        for check, memory in self.memory.items():
            if memory.misses >= MISSES:
                yield _check_blind(check, memory)


def _miss(memory: CheckMemory, result: Unobservable, at: Instant) -> bool:
    memory.misses += 1
    if memory.misses == 1:
        memory.blind_since = at.wall
        memory.reason = result.reason
    return memory.misses == MISSES


def _remember(memory: CheckMemory, observed: Observation, at: Instant, seconds: float) -> None:
    for name, value in observed.readings.items():
        readings = memory.readings.setdefault(name, [])
        if not readings or readings[-1][1] != value:
            readings.append((at.uptime, value))
    horizon = at.uptime - seconds
    for name, readings in list(memory.readings.items()):
        if name not in observed.readings and readings[-1][0] < horizon:
            del memory.readings[name]
            continue
        # The newest reading before the horizon says what the counter showed when the time span began.
        old = sum(1 for when, _ in readings if when < horizon) - 1
        del readings[: max(0, old, len(readings) - READINGS_LIMIT)]


def _believable(check: CheckDefinition, observed: Observation, memory: CheckMemory) -> tuple[Symptom, ...]:
    """Return the symptoms; a single one when every one of several devices is sick at once (rule T12)."""
    sick = {each.gpu or each.device for each in observed.symptoms if not each.only_holds}
    known = any(track.raised and track.symptom.code != _all_code(check) for track in memory.tracks.values())
    if observed.of < 2 or len(sick) < observed.of or known:
        return observed.symptoms
    first = observed.symptoms[0]
    return (
        Symptom(
            code=_all_code(check),
            subsystem=first.subsystem,
            severity=Severity.WARNING,
            action=Action.ASK,
            summary=f"Every one of {observed.of} devices failed the check {check.name} at once: "
            "the fault is in what they share, or in the way they are read.",
            evidence="\n".join(f"{each.gpu or each.device}: {each.summary}" for each in observed.symptoms),
            # A fault of the reader is over with the first read that succeeds.
            rule=msgspec.structs.replace(check.rule, clear_polls=1, clear_seconds=0.0),
        ),
    )


def _all_code(check: CheckDefinition) -> str:
    return check.all_code or f"{check.name}-all"


def _follow(track: SymptomTrack, symptom: Symptom | None, rule: DebounceRule, at: Instant) -> bool:
    if symptom is None or (symptom.only_holds and not track.raised):
        return _clear(track, at, track.symptom.rule or rule)
    own = symptom.rule or rule
    track.quiet_polls, track.quiet_since = 0, None
    if track.row_since is None:
        track.row_since = at.uptime
    track.polls = (track.polls << 1 | 1) & (1 << _POLLS) - 1
    if symptom.only_holds:
        return False
    if not track.raised:
        return _raise(track, symptom, own, at)
    changed = _judgement(track.symptom) != _judgement(symptom)
    if changed:
        track.symptom = symptom
    if changed or at.wall - track.last_seen >= LAST_SEEN_STEP_SECONDS:
        track.last_seen = max(track.last_seen, at.wall)
    return _escalate(track, at) or changed


def _raise(track: SymptomTrack, symptom: Symptom, rule: DebounceRule, at: Instant) -> bool:
    track.symptom = symptom
    of_polls = rule.of_polls or rule.raise_polls
    often = (track.polls & (1 << of_polls) - 1).bit_count() >= rule.raise_polls
    long = track.row_since is not None and at.uptime - track.row_since >= rule.raise_seconds
    if not (symptom.at_once or (often and long)):
        return False
    track.raised = True
    track.first_seen = track.last_seen = at.wall
    _escalate(track, at)
    return True


def _escalate(track: SymptomTrack, at: Instant) -> bool:
    escalation, since = track.symptom.escalation, track.row_since
    if track.escalated or escalation is None or since is None:
        return False
    if at.uptime - since < escalation.after_seconds:
        return False
    track.escalated = True
    track.last_seen = max(track.last_seen, at.wall)
    return True


def _clear(track: SymptomTrack, at: Instant, rule: DebounceRule) -> bool:
    track.polls = track.polls << 1 & (1 << _POLLS) - 1
    track.row_since = None
    if not track.raised:
        if not track.polls & (1 << max(rule.of_polls, rule.raise_polls)) - 1:
            track.polls = 0
        return False
    track.quiet_polls += 1
    if track.quiet_since is None:
        track.quiet_since = at.uptime
    quiet = at.uptime - track.quiet_since >= rule.clear_seconds
    if rule.latched or track.quiet_polls < rule.clear_polls or not quiet:
        return False
    track.raised, track.escalated, track.polls = False, False, 0
    return True


def _judgement(symptom: Symptom) -> tuple[Severity, Action, Escalation | None]:
    return symptom.severity, symptom.action, symptom.escalation


def _finding(check: str, track: SymptomTrack) -> Finding:
    symptom = track.symptom
    escalation = symptom.escalation if track.escalated else None
    return Finding(
        check=check,
        subsystem=symptom.subsystem,
        code=symptom.code,
        severity=escalation.severity if escalation else symptom.severity,
        action=escalation.action if escalation else symptom.action,
        gpu=symptom.gpu,
        device=symptom.device,
        first_seen=track.first_seen,
        last_seen=track.last_seen,
        summary=symptom.summary,
        evidence=symptom.evidence[:EVIDENCE_LIMIT],
    )


def _check_blind(check: str, memory: CheckMemory) -> Finding:
    return Finding(
        check="check-blind",
        subsystem="agent",
        code="check-blind",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=check,
        first_seen=memory.blind_since,
        last_seen=memory.blind_since,
        summary=f"The check {check} cannot observe the node, so faults that it detects go unnoticed.",
        evidence=memory.reason[:EVIDENCE_LIMIT],
    )
