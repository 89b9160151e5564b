"""The journal of a repair: its status before → its status after, one thing that happened at a time. Pure.

Intent is written before a side effect and what came of it afterwards, so whoever comes back after a crash
knows what may have happened. Whether it did happen is asked of the world, not of the journal.
"""

from datetime import datetime

from reconciler.incidents.records import JournalEntry, Phase, PreState, RepairStatus, StepState
from reconciler.repair.steps import RESET

RELEASE = "release"
"""Entry that says that every mark and lock of an ended repair is gone."""

RECORD = "record"
"""Entry that says that the outcome stands in Git, or that there is nothing to record."""


def entry(status: RepairStatus, step: str) -> JournalEntry | None:
    """Return the newest entry of a step, None when it was never begun."""
    return next((each for each in reversed(status.steps) if each.name == step), None)


def is_done(status: RepairStatus, step: str) -> bool:
    """Whether the newest entry of a step says done."""
    last = entry(status, step)
    return last is not None and last.state is StepState.DONE


def began(status: RepairStatus) -> bool:
    """Whether the destructive step may have happened: some attempt is not known to be without effect."""
    return any(each.name == RESET and each.state is not StepState.NOT_DONE for each in status.steps)


def attempts(status: RepairStatus) -> int:
    """Return how often the destructive step was tried, without effect or with."""
    return sum(each.name == RESET for each in status.steps)


def intend(status: RepairStatus, step: str, message: str, now: datetime) -> RepairStatus:
    """Return the status before a side effect. A resumed step keeps its start, a new attempt adds one."""
    last = entry(status, step)
    if last is None or last.state is StepState.NOT_DONE:
        fresh = JournalEntry(name=step, state=StepState.INTENT, started_at=now, message=message)
        steps = (*status.steps, fresh)
    else:
        again = {"state": StepState.INTENT, "finished_at": None, "message": message}
        steps = _replaced(status, last, last.model_copy(update=again))
    started = status.started_at or now
    return status.model_copy(
        update={
            "phase": Phase.RUNNING, "started_at": started, "step": step, "message": message, "steps": steps
        }
    )  # fmt: skip


def done(status: RepairStatus, step: str, message: str, now: datetime, seen: str = "") -> RepairStatus:
    """Return the status once a step was seen done; nothing changes when that stands there already."""
    last = entry(status, step)
    if last is not None and last.state is StepState.DONE:
        return status
    if last is None or last.state is StepState.NOT_DONE:
        fresh = JournalEntry(
            name=step, state=StepState.DONE, started_at=now, finished_at=now, message=message, seen=seen
        )
        return status.model_copy(update={"steps": (*status.steps, fresh)})
    finished = {"state": StepState.DONE, "finished_at": now, "message": message, "seen": seen or last.seen}
    return status.model_copy(update={"steps": _replaced(status, last, last.model_copy(update=finished))})


def not_done(status: RepairStatus, step: str, message: str, now: datetime) -> RepairStatus:
    """Return the status once an attempt is known to have had no effect; the next one gets its own entry."""
    last = entry(status, step)
    if last is None:
        return status
    update = {"state": StepState.NOT_DONE, "finished_at": now, "message": message}
    steps = _replaced(status, last, last.model_copy(update=update))
    return status.model_copy(update={"steps": steps, "message": message})


def saw(status: RepairStatus, step: str, seen: str) -> RepairStatus:
    """Return the status with the heartbeat that was looked at, for a later look to compare with."""
    last = entry(status, step)
    if last is None or last.seen == seen:
        return status
    return status.model_copy(
        update={"steps": _replaced(status, last, last.model_copy(update={"seen": seen}))}
    )


def say(status: RepairStatus, step: str, message: str) -> RepairStatus:
    """Return the status with what people should know now."""
    return status.model_copy(update={"step": step, "message": message})


def remember(status: RepairStatus, before: PreState) -> RepairStatus:
    """Return the status with the world as it was, which is taken only once."""
    return status if status.pre_state else status.model_copy(update={"pre_state": before})


def end(status: RepairStatus, phase: Phase, reason: str, now: datetime, owner: str = "") -> RepairStatus:
    """Return the status of an ended repair; `owner` is who takes over a held one. An ending never changes."""
    if status.phase.final:
        return status
    return status.model_copy(update={"phase": phase, "message": reason, "finished_at": now, "held_by": owner})


def _replaced(status: RepairStatus, old: JournalEntry, new: JournalEntry) -> tuple[JournalEntry, ...]:
    return tuple(new if each is old else each for each in status.steps)
