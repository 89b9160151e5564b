"""Walks the steps of one repair, one pass at a time, and brings every ending to its end.

A pass asks the steps in order whether they are done, by the world's word, lets at most one thing happen, and
returns. The journal is written before that thing and after it, each time only if nobody else wrote it since
it was read: of two reconcilers, one acts and the other finds out that it lost. What a crash interrupts, the
next pass looks at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from reconciler.incidents.admission import NotAdmitted
from reconciler.incidents.records import Phase, RepairStatus
from reconciler.kube.write import Conflict
from reconciler.repair import comeback, drain, hold, journal, outcome, reset, revalidate, steps
from reconciler.repair.scene import LATER, SOON, Act, Again, Done, End, Look, NotDone, Repair, Scene
from reconciler.source.recording import AlreadyRecordedError

LOOK: Final[Mapping[str, Callable[[Repair, Scene], Look]]] = {
    steps.LOCK: hold.lock,
    steps.REVALIDATE: revalidate.revalidate,
    steps.PRESTATE: revalidate.record_pre_state,
    steps.CORDON: hold.cordon,
    steps.DRAIN: drain.drain,
    steps.RECHECK: revalidate.recheck,
    steps.RESET: reset.reset,
    steps.RETURN: comeback.come_back,
    steps.VERIFY: comeback.confirm,
    steps.UNCORDON: hold.uncordon,
}
"""How each step looks at the world; the order is the plan's."""

ONCE: Final = frozenset({steps.REVALIDATE, steps.PRESTATE, steps.RESET, steps.RETURN, steps.VERIFY})
"""Steps that stay done once they were seen done; the others are asked of the world in each pass."""

UNTIL_RESET: Final = frozenset({steps.REVALIDATE, steps.PRESTATE, steps.CORDON, steps.DRAIN, steps.RECHECK})
"""Steps that have no meaning any more once the reset may have happened."""

SUCCESS: Final = "the node is back in service"


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass left behind: when to look again (seconds), None when nothing is left to do."""

    after: float | None
    status: RepairStatus


def advance(repair: Repair, scene: Scene) -> Pass:
    """Take the repair at most one act further.

    Raises UnavailableError or RecordUnavailableError when the outside does not answer; nothing is lost, the
    next pass looks again.
    """
    if repair.status.phase.final:
        return conclude(repair, scene)
    status = repair.status
    for step in _to_look_at(repair):
        found = LOOK[step](replace(repair, status=status), scene)
        if isinstance(found, Done):
            status = _noted(status, step, found, scene)
            continue
        if isinstance(found, Act):
            return _act(repair, scene, journal.intend(status, step, found.intent, scene.now), (step, found))
        return _settle(repair, scene, status, (step, found))
    return _settle(repair, scene, status, (steps.UNCORDON, End(Phase.SUCCEEDED, SUCCESS)))


def hold_back(repair: Repair, scene: Scene, reason: str) -> Pass:
    """Let a repair that may not start yet say why; it ends when its order does not stand any more."""
    judged = scene.orders.judge(repair.spec.record_path, scene.now)
    if isinstance(judged, NotAdmitted):
        return _settle(repair, scene, repair.status, ("", End(judged.phase, judged.reason)))
    return _settle(repair, scene, repair.status, ("", Again(reason, LATER)))


def conclude(repair: Repair, scene: Scene) -> Pass:
    """Give back what an ended repair holds, then record its outcome; each is repeated until it is done.

    The marks stay on a node that may have been reset and is not known to be well.
    """
    status = repair.status
    if not journal.is_done(status, journal.RELEASE):
        unwell = journal.began(status) and status.phase in (Phase.FAILED, Phase.HELD)
        if not hold.release(repair, scene, keep_marks=unwell):
            return Pass(0, status)
        released = journal.done(status, journal.RELEASE, "gave back what it held", scene.now)
        return _written(repair, scene, released, after=0)
    if journal.is_done(status, journal.RECORD):
        return Pass(None, status)
    stands = scene.orders.stands(repair.spec.record_path, scene.now)
    if stands is None:
        return Pass(LATER, status)
    if stands:
        event = outcome.of_repair(repair.spec.record_path, repair.spec.record, status)
        try:
            said = f"recorded in {scene.recorder.record(event)}"
        except AlreadyRecordedError as error:
            said = str(error)
    else:
        said = "not recorded: Git holds no such repair record"
    return _written(repair, scene, journal.done(status, journal.RECORD, said, scene.now), after=None)


def _to_look_at(repair: Repair) -> list[str]:
    """Return the steps that this pass has to ask, in the plan's order."""
    status, begun = repair.status, journal.began(repair.status)
    return [
        step
        for step in steps.STEPS[repair.spec.record.action]
        if not (step in ONCE and journal.is_done(status, step)) and not (begun and step in UNTIL_RESET)
    ]


def _act(repair: Repair, scene: Scene, intended: RepairStatus, what: tuple[str, Act]) -> Pass:
    step, act = what
    written = _write(repair, scene, intended)
    if written is None:
        return Pass(0, repair.status)
    return _settle(written, scene, intended, (step, act.do()))


def _settle(
    repair: Repair, scene: Scene, status: RepairStatus, what: tuple[str, Again | NotDone | End]
) -> Pass:
    step, found = what
    match found:
        case Again(message, after, seen):
            status = journal.say(status, step, message or status.message)
            return _written(repair, scene, journal.saw(status, step, seen) if seen else status, after=after)
        case NotDone(message):
            return _written(repair, scene, journal.not_done(status, step, message, scene.now), after=0)
        case End(phase, reason):
            owner = scene.orders.owner(repair.spec.record_path) or "operators"
            owner = owner if phase is Phase.HELD else ""
            return _written(repair, scene, journal.end(status, phase, reason, scene.now, owner), after=0)


def _noted(status: RepairStatus, step: str, found: Done, scene: Scene) -> RepairStatus:
    if found.before is not None:
        status = journal.remember(status, found.before)
    if found.new_boot_id:
        status = status.model_copy(update={"new_boot_id": found.new_boot_id})
    return journal.done(status, step, found.message, scene.now, found.seen)


def _written(repair: Repair, scene: Scene, status: RepairStatus, *, after: float | None) -> Pass:
    if _write(repair, scene, status) is None:
        return Pass(SOON, repair.status)
    return Pass(after, status)


def _write(repair: Repair, scene: Scene, status: RepairStatus) -> Repair | None:
    """Store the status if nobody else wrote it since `repair` was read; None when somebody did."""
    if status == repair.status:
        return repair
    content = status.model_dump(mode="json", by_alias=True)
    result = scene.writer.write_status(repair.name, repair.resource_version, content)
    if isinstance(result, Conflict):
        return None
    return replace(repair, resource_version=result.resource_version, status=status)
