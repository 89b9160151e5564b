"""Watch: looks over time → findings. Raises after enough looks, clears by its rule, says who is blind.

One look is nothing (rule T12). Every span is measured on the clock that counts from boot, so a wall clock
that jumps neither raises nor clears anything; wall time is only what a finding shows.
"""

from collections.abc import Iterator

import msgspec

from checks.check import Blind, Check, Look, Past, Reading, Rule, Seen, Symptom, Worse
from checks.finding import EVIDENCE_LIMIT, Action, Finding, Severity

MISSES = 3
"""Looks in a row that were not possible, until the check counts as blind (rule T12)."""

READINGS_LIMIT = 512
"""Readings remembered under one name; beyond it the oldest are forgotten."""

LAST_SEEN_STEP_SECONDS = 600.0
"""How exactly `last_seen` is told (ours): a fault that stays the same is the same finding, byte by byte."""

EARLY_PART = 0.5
"""A look within this part of its interval after the one before, as after a restart, is the same look."""

_POLLS = 64


class Moment(msgspec.Struct, frozen=True):
    """One point in time on both clocks: Unix seconds, and seconds since boot."""

    now: float
    uptime: float


class Track(msgspec.Struct):
    """One symptom over time. `polls` are its last looks as bits, the newest lowest; spans count from boot."""

    symptom: Symptom
    polls: int = 0
    row_since: float | None = None
    quiet_since: float | None = None
    quiet_polls: int = 0
    raised: bool = False
    worse: bool = False
    first_seen: float = 0.0
    last_seen: float = 0.0


class Memory(msgspec.Struct):
    """What is remembered of one check; `looked_at` is the uptime of its last look."""

    tracks: dict[str, Track] = {}
    readings: dict[str, list[Reading]] = {}
    misses: int = 0
    reason: str = ""
    blind_since: float = 0.0
    looked_at: float | None = None


class Watch:
    """The findings of all checks in one boot. `memory` is its whole state, to be saved and given back."""

    def __init__(self, memory: dict[str, Memory] | None = None) -> None:
        self.memory = memory if memory is not None else {}

    def past(self, check: str) -> Past:
        """Return what earlier looks of `check` have read."""
        memory = self.memory.get(check)
        return {} if memory is None else {name: tuple(each) for name, each in memory.readings.items()}

    def has_just_looked(self, check: Check, at: Moment) -> bool:
        """Whether another look of `check` would come too soon to be one of its own."""
        memory = self.memory.get(check.name)
        if memory is None or memory.looked_at is None:
            return False
        return 0 <= at.uptime - memory.looked_at < EARLY_PART * check.every_seconds

    def fold(self, check: Check, look: Look, at: Moment) -> bool:
        """Take in one look; say whether findings or blind spots came, went or got another verdict."""
        memory = self.memory.setdefault(check.name, Memory())
        memory.looked_at = at.uptime
        if isinstance(look, Blind):
            return False if look.told else _miss(memory, look, at)
        saw = memory.misses >= MISSES
        memory.misses = 0
        _remember(memory, look, at, check.remember_seconds)
        symptoms = {each.key: each for each in _believable(check, look, memory)}
        for key, symptom in symptoms.items():
            if symptom.at_once or at.uptime >= (symptom.rule or check.rule).boot_grace_seconds:
                memory.tracks.setdefault(key, Track(symptom))
        changed = [_follow(track, symptoms.get(key), check.rule, at) for key, track in memory.tracks.items()]
        memory.tracks = {key: each for key, each in memory.tracks.items() if each.raised or each.polls}
        return saw or any(changed)

    def drop(self, check: str) -> bool:
        """Forget a check that was switched off; say whether anything was shown of it."""
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
        """Return the checks that cannot look."""
        for check, memory in self.memory.items():
            if memory.misses >= MISSES:
                yield _check_blind(check, memory)


def _miss(memory: Memory, look: Blind, at: Moment) -> bool:
    memory.misses += 1
    if memory.misses == 1:
        memory.blind_since = at.now
        memory.reason = look.reason
    return memory.misses == MISSES


def _remember(memory: Memory, seen: Seen, at: Moment, seconds: float) -> None:
    for name, value in seen.readings.items():
        readings = memory.readings.setdefault(name, [])
        if not readings or readings[-1][1] != value:
            readings.append((at.uptime, value))
    horizon = at.uptime - seconds
    for name, readings in list(memory.readings.items()):
        if name not in seen.readings and readings[-1][0] < horizon:
            del memory.readings[name]
            continue
        # The newest one that is too old says what the counter showed when the time that counts began.
        old = sum(1 for when, _ in readings if when < horizon) - 1
        del readings[: max(0, old, len(readings) - READINGS_LIMIT)]


def _believable(check: Check, seen: Seen, memory: Memory) -> tuple[Symptom, ...]:
    """Return the symptoms; one for all when every one of several devices fell ill at once (rule T12)."""
    sick = {each.gpu or each.device for each in seen.symptoms if not each.only_holds}
    known = any(track.raised and track.symptom.code != _all_code(check) for track in memory.tracks.values())
    if seen.of < 2 or len(sick) < seen.of or known:
        return seen.symptoms
    first = seen.symptoms[0]
    return (
        Symptom(
            code=_all_code(check),
            subsystem=first.subsystem,
            severity=Severity.WARNING,
            action=Action.ASK,
            summary=f"Every one of {seen.of} devices failed the check {check.name} at once: "
            "what they have in common is at fault, or the way they are read.",
            evidence="\n".join(f"{each.gpu or each.device}: {each.summary}" for each in seen.symptoms),
            # Trouble of the reader is over with the first read that succeeds.
            rule=msgspec.structs.replace(check.rule, clear_polls=1, clear_seconds=0.0),
        ),
    )


def _all_code(check: Check) -> str:
    return check.all_code or f"{check.name}-all"


def _follow(track: Track, symptom: Symptom | None, rule: Rule, at: Moment) -> bool:
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
    if changed or at.now - track.last_seen >= LAST_SEEN_STEP_SECONDS:
        track.last_seen = max(track.last_seen, at.now)
    return _worsen(track, at) or changed


def _raise(track: Track, symptom: Symptom, rule: Rule, at: Moment) -> bool:
    track.symptom = symptom
    of_polls = rule.of_polls or rule.raise_polls
    often = (track.polls & (1 << of_polls) - 1).bit_count() >= rule.raise_polls
    long = track.row_since is not None and at.uptime - track.row_since >= rule.raise_seconds
    if not (symptom.at_once or (often and long)):
        return False
    track.raised = True
    track.first_seen = track.last_seen = at.now
    _worsen(track, at)
    return True


def _worsen(track: Track, at: Moment) -> bool:
    worse, since = track.symptom.worse, track.row_since
    if track.worse or worse is None or since is None or at.uptime - since < worse.after_seconds:
        return False
    track.worse = True
    track.last_seen = max(track.last_seen, at.now)
    return True


def _clear(track: Track, at: Moment, rule: Rule) -> bool:
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
    track.raised, track.worse, track.polls = False, False, 0
    return True


def _judgement(symptom: Symptom) -> tuple[Severity, Action, Worse | None]:
    return symptom.severity, symptom.action, symptom.worse


def _finding(check: str, track: Track) -> Finding:
    symptom = track.symptom
    worse = symptom.worse if track.worse else None
    return Finding(
        check=check,
        subsystem=symptom.subsystem,
        code=symptom.code,
        severity=worse.severity if worse else symptom.severity,
        action=worse.action if worse else symptom.action,
        gpu=symptom.gpu,
        device=symptom.device,
        first_seen=track.first_seen,
        last_seen=track.last_seen,
        summary=symptom.summary,
        evidence=symptom.evidence[:EVIDENCE_LIMIT],
    )


def _check_blind(check: str, memory: Memory) -> Finding:
    return Finding(
        check="check-blind",
        subsystem="agent",
        code="check-blind",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=check,
        first_seen=memory.blind_since,
        last_seen=memory.blind_since,
        summary=f"The check {check} cannot look, so what it watches over may be broken unseen.",
        evidence=memory.reason[:EVIDENCE_LIMIT],
    )
