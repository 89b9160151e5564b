"""The destructive step: one reset at a time, and never a second without proof that the first had no effect.

The proof (DESIGN section 4, rule 3) is that after the attempt's whole time budget the machine is on, a report
of the old boot arrives, and the node's heartbeat moves. Time alone proves nothing, and heartbeats are only
compared with each other, because they carry the node's clock.
"""

from datetime import datetime, timedelta

from reconciler.incidents.records import JournalEntry, Phase, PreState, StepState
from reconciler.kube.objects import Node
from reconciler.repair import journal
from reconciler.repair.providers.machine import OFF, ON, Machine, Refused, Sent, Unknown
from reconciler.repair.reports import ReportsUnavailableError
from reconciler.repair.scene import LATER, Act, Again, Done, End, Look, NotDone, Repair, Scene
from reconciler.repair.steps import RESET

LATEST = timedelta(seconds=15)
"""Age at which a pass may not reset any more: had this process slept, a rival could have taken over."""

GRACEFUL = "GracefulRestart"
FORCED = "ForceRestart"

ATTEMPTS = 2
"""Resets of one repair at most (repairs reference, section 2 rule 3)."""


def reset(repair: Repair, scene: Scene) -> Look:
    """Reset the machine; done is when the node reports another boot id than the one written down."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, "the journal lacks the state before the repair")
    node = scene.reader.node(repair.node)
    if journal.attempts(repair.status) and node is not None and node.boot_id not in ("", before.boot_id):
        return Done("the node has booted", seen=_heartbeat(repair, scene), new_boot_id=node.boot_id)
    last = journal.entry(repair.status, RESET)
    if last is None or last.state is StepState.NOT_DONE:
        return _order(repair, scene, before)
    return _await(repair, scene, node, last)


def _order(repair: Repair, scene: Scene, before: PreState) -> Look:
    tried = journal.attempts(repair.status)
    if tried >= ATTEMPTS:
        return End(Phase.FAILED, f"{tried} resets had no effect: {repair.status.message}")
    machine = scene.machines.observe(before.system)
    if not isinstance(machine, Machine):
        return Again(f"waits for the BMC: {machine.reason}", LATER)
    if machine.power == OFF:
        return End(Phase.HELD, "the BMC says that the machine is off, although its node reports")
    if machine.power != ON:
        return Again(f"waits: the machine is {machine.power}", LATER)
    wanted = (GRACEFUL, FORCED)[tried:]
    kind = next((each for each in wanted if not machine.reset_types or each in machine.reset_types), None)
    if kind is None:
        return End(Phase.FAILED, f"the BMC does not offer {' or '.join(wanted)}")
    return Act(kind, lambda: _send(scene, before.system, kind))


def _send(scene: Scene, system: str, kind: str) -> Again | NotDone:
    if scene.clock() - scene.now > LATEST:
        return NotDone(f"{kind} was not sent: this pass took too long")
    match scene.machines.reset(system, kind):
        case Sent():
            return Again(_waiting(kind))
        case Refused(reason):
            return NotDone(f"{kind}: {reason}")
        case Unknown(reason):
            return Again(f"{kind}: {reason}; the boot id will tell")


def _await(repair: Repair, scene: Scene, node: Node | None, last: JournalEntry) -> Look:
    policy = scene.config.policy
    budget = policy.graceful_timeout if last.message == GRACEFUL else policy.boot_timeout
    over = last.started_at + budget
    if scene.now < over:
        return Again(repair.status.message or _waiting(last.message))
    proof = _still_the_old_boot(repair, scene, node, over)
    if isinstance(proof, NotDone):
        return proof
    # The last budget may end with the attempt's own, so proof gets time to arrive.
    if scene.now > max(over, last.started_at + policy.boot_timeout) + max(
        scene.stale_after, timedelta(seconds=5)
    ):
        return End(Phase.HELD, f"cannot tell whether {last.message} was carried out: {proof.message}")
    return proof


def _still_the_old_boot(repair: Repair, scene: Scene, node: Node | None, over: datetime) -> NotDone | Again:
    """Return the proof that the attempt had no effect, or what is missing of it."""
    before, last = repair.status.pre_state, journal.entry(repair.status, RESET)
    if node is None or before is None or last is None:
        return Again("the node is not registered")
    try:
        held = scene.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        return Again(str(error))
    if held is None or held.report.boot_id != before.boot_id:
        return Again("no report of the old boot")
    if scene.now - timedelta(seconds=held.age_seconds) <= over:
        return Again("no report of the old boot since the time was over")
    machine = scene.machines.observe(before.system)
    if not isinstance(machine, Machine) or machine.power != ON:
        return Again("the BMC does not say that the machine is on")
    beat = _heartbeat(repair, scene)
    if not beat or not last.seen or beat == last.seen:
        return Again("no heartbeat of the old boot since the time was over", seen=last.seen or beat)
    return NotDone(f"{last.message} had no effect: the old boot still reports")


def _heartbeat(repair: Repair, scene: Scene) -> str:
    beat = scene.reader.node_heartbeat(repair.node)
    return beat.isoformat() if beat else ""


def _waiting(kind: str) -> str:
    return f"{kind} was sent; waits for the new boot"
