"""Runs the steps of one repair, one pass at a time, and releases and records a repair that has ended.

A pass looks at the steps in order to see whether they are done, performs at most one act, and returns. It writes
the journal before and after the act, each time only if nobody else has written it since it was read: of two
reconcilers, one acts and the other gets a conflict. After a crash, the next pass looks at the cluster again.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from reconciler.incidents.admission import NO_RECORD, NotAdmitted, UnreadableRecord
from reconciler.incidents.progress import Phase, StepState
from reconciler.kube.results import Conflict, UnavailableError
from reconciler.repair import journal, outcome
from reconciler.repair.actions.registry import RefusedPlan, RunnablePlan, resolve
from reconciler.repair.resource import Repair, RepairStatus
from reconciler.repair.step import LATER, SOON, Act, Again, Done, End, NotDone, Step, StepContext, StepResult
from reconciler.source.recording import AlreadyRecordedError, Recorder

SUCCESS: Final = "the node is back in service"

RELEASE_LIMIT: Final = timedelta(minutes=10)
"""How long the outcome waits for a release that the API server refuses; the release goes on afterwards."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Result of a pass: when to look again (seconds, None if nothing is left to do), and the new status."""

    after: float | None
    status: RepairStatus


class Executor:
    """Advances one repair by one pass. Every method may raise UnavailableError or RecordUnavailableError; nothing
    is lost then, because the next pass looks again.
    """

    def __init__(self, repair: Repair, context: StepContext, recorder: Recorder) -> None:
        self._repair = repair
        self._context = context
        self._recorder = recorder

    def advance(self) -> Pass:
        """Advance the repair by at most one act."""
        status = self._repair.status
        if status.phase.final:
            return self.conclude()
        match resolve(self._repair.spec.record.plan):
            case RefusedPlan(phase, reason):
                return self._settle(status, None, End(phase, reason))
            case RunnablePlan(_, steps, _):
                return self._walk(steps)

    def hold_back(self, reason: str) -> Pass:
        """Tell people why a repair may not start yet; end it if its record does not stand any more."""
        status = self._repair.status
        if status.phase is not Phase.PENDING:
            # Another reconciler has started it since the nodes in repair were counted.
            return self.advance()
        match self._context.records.judge(self._repair.spec.record_path, self._context.now):
            case NotAdmitted(_, _, phase, why):
                return self._settle(status, None, End(phase, why))
            case UnreadableRecord():
                return self._settle(status, None, End(Phase.FAILED, NO_RECORD))
        return self._settle(status, None, Again(reason, LATER))

    def conclude(self) -> Pass:
        """Release what an ended repair holds, then record its outcome; each is retried until it is done."""
        status = self._repair.status
        if not status.released:
            try:
                return self._release()
            except UnavailableError:
                if status.recorded or not self._release_is_late():
                    raise
        if status.recorded:
            return Pass(None, status)
        path = self._repair.spec.record_path
        stands = self._context.records.stands(path, self._context.now)
        if stands is None:
            return Pass(LATER, status)
        if stands:
            event = outcome.of_repair(path, self._repair.spec.record, status)
            try:
                said = f"recorded in {self._recorder.record(event)}"
            except AlreadyRecordedError as error:
                said = str(error)
        else:
            said = "not recorded: Git holds no such repair record"
        return self._written(
            status.model_copy(update={"recorded": said}), after=None if status.released else LATER
        )

    def _release_is_late(self) -> bool:
        ended = self._repair.status.finished_at
        return ended is not None and self._context.now - ended > RELEASE_LIMIT

    def _walk(self, steps: tuple[Step, ...]) -> Pass:
        status = self._repair.status
        for step in _to_look_at(status, steps):
            found = self._look(step, status)
            if isinstance(found, Done):
                status = self._noted(status, step, found)
                continue
            late = self._late(status, step, found)
            if late is not None:
                return self._settle(status, step, late)
            if isinstance(found, Act):
                return self._act(status, step, found)
            return self._settle(status, step, found)
        return self._settle(status, None, End(Phase.SUCCEEDED, SUCCESS))

    def _look(self, step: Step, status: RepairStatus) -> StepResult:
        """Look at a step. What the API server refuses counts as a wait, so that the limit and the message hold."""
        try:
            return step.look(replace(self._repair, status=status), self._context)
        except UnavailableError as error:
            return Again(str(error), LATER)

    def _late(self, status: RepairStatus, step: Step, found: Again | NotDone | End | Act) -> End | None:
        """Return how the repair ends if the step is past its limit, None if it is not."""
        since = journal.first_look(status, step.name)
        limit = step.limit(self._context.config.policy)
        if not isinstance(found, (Again, Act)) or since is None or self._context.now - since <= limit:
            return None
        last = journal.entry(status, step.name)
        if last is not None and last.state is StepState.DONE:
            # The step was done and begins again, and so does its limit.
            return None
        phase = step.late if isinstance(found, Act) else found.late or step.late
        waits_for = status.message if isinstance(found, Act) else found.message
        return End(
            phase, f"{step.words.doing} took longer than {_minutes(limit.total_seconds())}: {waits_for}"
        )

    def _act(self, status: RepairStatus, step: Step, act: Act) -> Pass:
        intended = journal.intend(status, step, act.intent, self._context.now, act.facts)
        written = self._write(intended)
        if written is None:
            return Pass(0, self._repair.status)
        return Executor(written, self._context, self._recorder)._settle(intended, step, act.do())

    def _settle(self, status: RepairStatus, step: Step | None, found: Again | NotDone | End) -> Pass:
        now, name = self._context.now, step.name if step else ""
        match found:
            case Again(message, after, facts):
                if step is not None:
                    status = journal.note(journal.looked(status, name, message, now), name, facts)
                return self._written(journal.say(status, name, message or status.message), after=after)
            case NotDone(message, facts):
                return self._written(journal.not_done(status, name, message, now, facts), after=0)
            case End(phase, reason):
                if phase is Phase.LAPSED and journal.may_have_happened(status):
                    # The node may have been acted on, so a person has to take over.
                    phase = Phase.HELD
                owner = self._context.records.owner(self._repair.spec.record_path) or "operators"
                ended = journal.end(status, phase, reason, now, owner if phase is Phase.HELD else "")
                return self._written(ended, after=0)

    def _noted(self, status: RepairStatus, step: Step, found: Done) -> RepairStatus:
        if found.before is not None:
            status = journal.remember(status, found.before)
        if found.new_boot_id:
            status = status.model_copy(update={"new_boot_id": found.new_boot_id})
        return journal.done(status, step, found.message, self._context.now, found.facts)

    def _release(self) -> Pass:
        """Undo what the repair holds, newest first, at most one act per pass.

        The cordon and taint stay on a node that may have been acted on and is not known to be healthy, and so does
        whatever this version does not know how to undo.
        """
        status, plan = self._repair.status, resolve(self._repair.spec.record.plan)
        unwell = journal.may_have_happened(status) and status.phase in (Phase.FAILED, Phase.HELD)
        steps = plan.steps if isinstance(plan, RunnablePlan) else ()
        for step in reversed(steps):
            if step.undo is None:
                continue
            # The journal may lack an entry; the cluster shows what is held.
            found = step.undo.look(self._repair, self._context)
            if isinstance(found, Act) and step.undo.keep and unwell:
                status = journal.holding(status, step, self._context.now)
            elif isinstance(found, Act):
                found.do()
                return Pass(0, status)
            else:
                status = journal.gave_back(status, step.name)
        return self._written(status.model_copy(update={"released": True}), after=0)

    def _written(self, status: RepairStatus, *, after: float | None) -> Pass:
        if self._write(status) is None:
            return Pass(SOON, self._repair.status)
        return Pass(after, status)

    def _write(self, status: RepairStatus) -> Repair | None:
        """Store the status if nobody else has written it since the repair was read; None if somebody has."""
        repair = self._repair
        if status == repair.status:
            return repair
        content = status.model_dump(mode="json", by_alias=True)
        result = self._context.writer.write_status(repair.name, repair.resource_version, content)
        if isinstance(result, Conflict):
            return None
        return replace(repair, resource_version=result.resource_version, status=status)


def _to_look_at(status: RepairStatus, steps: tuple[Step, ...]) -> list[Step]:
    """Return the steps that this pass has to look at, in the plan's order.

    Once the destructive step may have happened, the steps before it are skipped, except renewed ones.
    """
    begun = journal.may_have_happened(status)
    destructive = next((index for index, step in enumerate(steps) if step.destructive), len(steps))
    return [
        step
        for index, step in enumerate(steps)
        if not (step.once and journal.is_done(status, step.name))
        and not (begun and index < destructive and not step.renew)
    ]


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
