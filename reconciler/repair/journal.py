"""The journal of a repair: functions from its status before an event to its status after it. Pure.

The executor writes the intent before a side effect and the result afterwards, so that after a crash it is known
what may have happened. Whether it did happen is read from the cluster, not from the journal.
"""

from datetime import datetime
from typing import Any

from reconciler.incidents.progress import JournalEntry, Phase, StepState
from reconciler.repair.resource import PreState, RepairStatus, UndoEntry
from reconciler.repair.step import NO_FACTS, Facts, Step


def entry(status: RepairStatus, step: str) -> JournalEntry | None:
    """Return the newest entry of a step, None if it was never looked at."""
    return next((each for each in reversed(status.steps) if each.name == step), None)


def first_look(status: RepairStatus, step: str) -> datetime | None:
    """Return when a step was first looked at (UTC), over all its attempts; None if it never was."""
    return next((each.started_at for each in status.steps if each.name == step), None)


def is_done(status: RepairStatus, step: str) -> bool:
    """Whether the newest entry of a step is done."""
    last = entry(status, step)
    return last is not None and last.state is StepState.DONE


def may_have_happened(status: RepairStatus) -> bool:
    """Whether the destructive step may have happened: some attempt is not known to be without effect."""
    return any(each.destructive and each.state is not StepState.NOT_DONE for each in status.steps)


def attempts(status: RepairStatus, step: str) -> int:
    """Return the number of attempts at a step, with or without effect."""
    return sum(each.name == step and each.state is not StepState.WAITING for each in status.steps)


def finished_at(status: RepairStatus, step: str) -> datetime | None:
    """Return when the newest entry of a step ended (UTC), None if it has not."""
    last = entry(status, step)
    return last.finished_at if last else None


def looked(status: RepairStatus, step: str, message: str, now: datetime) -> RepairStatus:
    """Return the status after a step was looked at and waits; its limit counts from the first look.

    A step that was done and has to wait again starts over.
    """
    last = entry(status, step)
    if last is not None and last.state is StepState.DONE:
        again = last.model_copy(update=_resumed(StepState.WAITING, message, now))
        return status.model_copy(update={"steps": _replaced(status, last, again)})
    if last is not None:
        return status
    fresh = JournalEntry(name=step, state=StepState.WAITING, started_at=now, message=message)
    return status.model_copy(update={"steps": (*status.steps, fresh)})


def intend(
    status: RepairStatus, step: Step, message: str, now: datetime, facts: Facts = NO_FACTS
) -> RepairStatus:
    """Return the status before a side effect. A resumed step keeps its start; a new attempt adds an entry."""
    last = entry(status, step.name)
    update: dict[str, Any] = {
        "state": StepState.INTENT, "finished_at": None, "message": message,
        "destructive": step.destructive, **_noted(facts),
    }  # fmt: skip
    if last is None or last.state is StepState.NOT_DONE:
        fresh = JournalEntry(name=step.name, started_at=now, **update)
        steps = (*status.steps, fresh)
    else:
        began = {"started_at": now} if last.state is StepState.DONE else {}
        steps = _replaced(status, last, last.model_copy(update=update | began))
    return holding(status, step, now).model_copy(
        update={
            "phase": Phase.RUNNING, "started_at": status.started_at or now, "step": step.name,
            "message": message, "steps": steps,
        }
    )  # fmt: skip


def done(
    status: RepairStatus, step: Step, message: str, now: datetime, facts: Facts = NO_FACTS
) -> RepairStatus:
    """Return the status after a step was found done; unchanged if the journal says so already."""
    last = entry(status, step.name)
    if last is not None and last.state is StepState.DONE:
        return status
    status = holding(status, step, now)
    update = {
        "state": StepState.DONE, "finished_at": now, "message": message,
        "destructive": step.destructive, **_noted(facts),
    }  # fmt: skip
    if last is None or last.state is StepState.NOT_DONE:
        fresh = JournalEntry(name=step.name, started_at=now, **update)
        return status.model_copy(update={"steps": (*status.steps, fresh)})
    return status.model_copy(update={"steps": _replaced(status, last, last.model_copy(update=update))})


def not_done(
    status: RepairStatus, step: str, message: str, now: datetime, facts: Facts = NO_FACTS
) -> RepairStatus:
    """Return the status after an attempt without effect; the next attempt gets its own entry."""
    last = entry(status, step)
    if last is None:
        return status
    update = {"state": StepState.NOT_DONE, "finished_at": now, "message": message, **_noted(facts)}
    steps = _replaced(status, last, last.model_copy(update=update))
    return status.model_copy(update={"steps": steps, "message": message})


def note(status: RepairStatus, step: str, facts: Facts) -> RepairStatus:
    """Return the status with the facts of a look."""
    last, update = entry(status, step), _noted(facts)
    if last is None or not update:
        return status
    return status.model_copy(update={"steps": _replaced(status, last, last.model_copy(update=update))})


def say(status: RepairStatus, step: str, message: str) -> RepairStatus:
    """Return the status with the current step and message."""
    return status.model_copy(update={"step": step, "message": message})


def remember(status: RepairStatus, before: PreState) -> RepairStatus:
    """Return the status with the state before the repair, which is taken only once."""
    return status if status.pre_state else status.model_copy(update={"pre_state": before})


def gave_back(status: RepairStatus, step: str) -> RepairStatus:
    """Return the status after everything that a step took is released."""
    return status.model_copy(update={"undo": tuple(each for each in status.undo if each.step != step)})


def end(status: RepairStatus, phase: Phase, reason: str, now: datetime, owner: str = "") -> RepairStatus:
    """Return the status of an ended repair; `owner` takes over a held one. An ending never changes."""
    if status.phase.final:
        return status
    return status.model_copy(update={"phase": phase, "message": reason, "finished_at": now, "held_by": owner})


def holding(status: RepairStatus, step: Step, now: datetime) -> RepairStatus:
    """Return the status with an undo entry for the step, if it needs one."""
    if step.undo is None or any(each.step == step.name for each in status.undo):
        return status
    return status.model_copy(update={"undo": (*status.undo, UndoEntry(step=step.name, taken_at=now))})


def _resumed(state: StepState, message: str, now: datetime) -> dict[str, Any]:
    return {"state": state, "started_at": now, "finished_at": None, "message": message}


def _noted(facts: Facts) -> dict[str, Any]:
    found = {"drain": facts.drain, "order": facts.order, "heartbeat": facts.heartbeat}
    return {key: value for key, value in found.items() if value}


def _replaced(status: RepairStatus, old: JournalEntry, new: JournalEntry) -> tuple[JournalEntry, ...]:
    return tuple(new if each is old else each for each in status.steps)
