"""Which application faults are the GPU's after all: the same one under several jobs in a day (modifier M4).

A fault on several GPUs within a minute is the job's, however often it is started again. What is remembered
outlives the finding, which is over after ten quiet minutes.
"""

import re

import msgspec

from checks.finding import Action, Severity
from checks.kernel.companion import INCIDENT_SECONDS
from checks.kernel.event import Event, Verdict

DAY_SECONDS = 86_400.0
"""How far back other jobs count (M4)."""

JOBS = 2
"""So many jobs with the same fault make it the GPU's (M4)."""

VISITS_KEPT = 256
"""Faults remembered; beyond it the oldest are forgotten."""

REPEATED = Verdict(Severity.WARNING, Action.ASK, "M4 same place under several jobs")

_VICTIM = re.compile(r"pid=([0-9]{1,10})(?:, name=([^,]{0,64}))?")
_UNIT = re.compile(r"GPC ([0-9]{1,3}), TPC ([0-9]{1,3})")


class Visit(msgspec.Struct, frozen=True):
    """One application fault: on which GPU and unit of it, under which process, at which second since boot."""

    code: str
    gpu: str
    unit: str
    victim: str
    at: float


class Trail:
    """The application faults of the last day on one node in one boot."""

    def __init__(self, visits: tuple[Visit, ...] = ()) -> None:
        self.visits = visits

    def judge(self, event: Event, at: float) -> Event:
        """Return the event, judged as the GPU's when other jobs met the same; `at` is seconds since boot."""
        visit = _visit(event, at)
        if visit is None:
            return event
        recent = tuple(each for each in self.visits if at - each.at <= DAY_SECONDS)
        if not any(_same(each, visit) and each.victim == visit.victim for each in recent):
            recent = (*recent, visit)[-VISITS_KEPT:]
        self.visits = recent
        return event.judged(REPEATED) if _jobs(recent, visit) >= JOBS else event


def _visit(event: Event, at: float) -> Visit | None:
    if event.subsystem != "xid" or event.code not in ("13", "31") or event.gpu is None:
        return None
    victim, unit = _VICTIM.search(event.text), _UNIT.search(event.text)
    if victim is None or (event.code == "13" and unit is None):
        return None
    place = f"{unit[1]}/{unit[2]}" if unit and event.code == "13" else ""
    return Visit(event.code, event.gpu, place, f"{victim[1]} {victim[2] or ''}".rstrip(), at)


def _same(one: Visit, other: Visit) -> bool:
    return (one.code, one.gpu, one.unit) == (other.code, other.gpu, other.unit)


def _jobs(visits: tuple[Visit, ...], place: Visit) -> int:
    """Return how many jobs met the fault at this place alone; processes within a minute are one job."""
    jobs, last = 0, -INCIDENT_SECONDS
    for visit in visits:
        if not _same(visit, place) or any(_spreads(visit, other) for other in visits):
            continue
        if jobs == 0 or visit.at - last > INCIDENT_SECONDS:
            jobs += 1
        last = visit.at
    return jobs


def _spreads(visit: Visit, other: Visit) -> bool:
    near = abs(visit.at - other.at) <= INCIDENT_SECONDS
    return near and visit.code == other.code and visit.gpu != other.gpu
