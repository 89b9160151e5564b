"""Which application faults are the GPU's after all: the same one under several jobs in a day (modifier M4).

A fault on several GPUs within a minute is the job's, however often it is started again.
"""

import re
from collections.abc import Sequence

from checks.finding import Action, Severity
from checks.kernel.companion import INCIDENT_SECONDS
from checks.kernel.event import Event, Verdict
from checks.kernel.identity import Board
from checks.kernel.met import Met, When, apart

DAY_SECONDS = 86_400.0
"""How far back other jobs count (M4)."""

JOBS = 2
"""So many jobs with the same fault make it the GPU's (M4)."""

REPEATED = Verdict(Severity.WARNING, Action.ASK, "M4 same place under several jobs")

_VICTIM = re.compile(r"pid=([0-9]{1,10})(?:, name=([^,]{0,64}))?")
_UNIT = re.compile(r"GPC ([0-9]{1,3}), TPC ([0-9]{1,3})")


def visit(event: Event, board: Board, when: When) -> Met | None:
    """Return the application fault that `event` is: in which unit of the GPU, under which process."""
    if event.subsystem != "xid" or event.code not in ("13", "31"):
        return None
    victim, unit = _VICTIM.search(event.text), _UNIT.search(event.text)
    if victim is None or (event.code == "13" and unit is None):
        return None
    place = f"{unit[1]}/{unit[2]}" if unit and event.code == "13" else ""
    return Met(event.code, board, place, when, f"{victim[1]} {victim[2] or ''}".rstrip())


def is_known(visits: Sequence[Met], visit: Met) -> bool:
    """Whether the same process has met the same today; a pid of another boot is another process."""
    return any(
        each.victim == visit.victim
        and each.when.boot == visit.when.boot
        and apart(each.when, visit.when) <= DAY_SECONDS
        and each.is_at(visit)
        for each in reversed(visits)
    )


def is_repeated(visits: Sequence[Met], visit: Met) -> bool:
    """Whether several jobs met the fault at this place alone; processes within a minute are one job."""
    recent = [
        each for each in visits if each.code == visit.code and apart(each.when, visit.when) <= DAY_SECONDS
    ]
    elsewhere = [each.when for each in recent if not each.board.is_same(visit.board)]
    jobs, last = 0, None
    for each in recent:
        if not each.is_at(visit) or any(apart(each.when, other) <= INCIDENT_SECONDS for other in elsewhere):
            continue
        if last is None or apart(each.when, last) > INCIDENT_SECONDS:
            jobs += 1
        last = each.when
        if jobs >= JOBS:
            return True
    return False
