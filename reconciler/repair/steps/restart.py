"""Restart the machine: one order at a time, and a second only with proof that the first had no effect.

The proof (safety rules 3 and 14) is that after the order's whole time budget the machine is on, a report from the
old boot arrives, and the node's heartbeat changes. Time alone proves nothing. Heartbeats are only compared with
each other, because they carry the node's clock.
"""

from datetime import datetime, timedelta

from reconciler.config.schema import RepairPolicy
from reconciler.incidents.progress import JournalEntry, OrderFact, OrderResult, Phase, StepState
from reconciler.kube.objects import Node
from reconciler.repair import journal
from reconciler.repair.providers.provider import Machine, Order, OrderOutcome, Power
from reconciler.repair.resource import PreState, Repair
from reconciler.repair.step import (
    LATER,
    Act,
    Again,
    Done,
    End,
    Facts,
    NotDone,
    ReportsUnavailableError,
    Step,
    StepContext,
    StepResult,
    StepWords,
)

NAME = "reset"

LATEST = timedelta(seconds=15)
"""Age of a pass after which it must not act: if this process was suspended, another may have taken over."""

ORDERS = (Order.RESTART, Order.FORCE_RESTART)
"""The orders of one repair, each given at most once (safety rule 14)."""

PROOF_TIME = timedelta(seconds=5)
"""Minimum time for the proof to arrive after the last order's budget."""

NO_PRE_STATE = "the journal lacks the state before the repair"


def restart(repair: Repair, context: StepContext) -> StepResult:
    """Restart the machine; done once the node reports another boot id than in the recorded state."""
    before = repair.status.pre_state
    if before is None:
        return End(Phase.FAILED, NO_PRE_STATE)
    node = context.reader.node(repair.node)
    tried = journal.attempts(repair.status, NAME)
    if tried and node is not None and node.boot_id not in ("", before.boot_id):
        beat = Facts(heartbeat=_heartbeat(repair, context))
        return Done("the node has booted", beat, new_boot_id=node.boot_id)
    last = journal.entry(repair.status, NAME)
    if last is None or last.state in (StepState.NOT_DONE, StepState.WAITING):
        return _next_order(repair, context, before, tried)
    return _await(repair, context, node, last)


def _next_order(repair: Repair, context: StepContext, before: PreState, tried: int) -> StepResult:
    if tried >= len(ORDERS):
        return End(
            Phase.FAILED, f"{tried} orders to restart the machine had no effect: {repair.status.message}"
        )
    machine = context.provider.observe(before.machine)
    if not isinstance(machine, Machine):
        return Again(machine.reason, LATER)
    if machine.power is Power.OFF:
        return End(Phase.HELD, "the machine's controller reports power off, but the node still reports")
    if machine.power is not Power.ON:
        return Again(f"the machine is {machine.detail or machine.power}", LATER)
    order = next((each for each in ORDERS[tried:] if each in machine.orders), None)
    if order is None:
        return End(Phase.FAILED, f"the machine's controller does not offer a {' or a '.join(ORDERS[tried:])}")
    fact = OrderFact(order=order, given_at=context.now)
    return Act(f"order a {order}", lambda: _give(repair, context, before.machine, fact), Facts(order=fact))


def _give(repair: Repair, context: StepContext, machine: str, fact: OrderFact) -> Again | NotDone:
    if context.clock() - context.now > LATEST:
        late = OrderOutcome(OrderResult.NOT_SENT, "this pass took too long")
        return _told(late, fact)
    return _told(context.provider.act(machine, repair.action_id, Order(fact.order)), fact)


def _told(outcome: OrderOutcome, fact: OrderFact) -> Again | NotDone:
    """Return the result of the step for the provider's result of the order."""
    facts = Facts(order=fact.model_copy(update={"result": outcome.result, "reason": outcome.reason}))
    match outcome.result:
        case OrderResult.NOT_SENT:
            return NotDone(f"the {fact.order} was not sent: {outcome.reason}", facts)
        case OrderResult.REFUSED:
            return NotDone(f"the {fact.order} was refused: {outcome.reason}", facts)
        case OrderResult.ACCEPTED:
            return Again(_waiting(fact), facts=facts)
        case _:
            return Again(
                f"the {fact.order}: {outcome.reason}; a new boot ID will show whether it was carried out",
                facts=facts,
            )


def _await(repair: Repair, context: StepContext, node: Node | None, last: JournalEntry) -> StepResult:
    policy, fact = context.config.policy, last.order
    if fact is None:
        return End(Phase.HELD, "the journal does not say which order was given")
    before = repair.status.pre_state
    if fact.result is OrderResult.UNKNOWN and before is not None:
        # The response was lost, or we crashed before it: the provider may know.
        known = context.provider.outcome(before.machine, repair.action_id)
        if known.result is not OrderResult.UNKNOWN:
            return _told(known, fact)
    over = fact.given_at + _budget(fact, policy)
    if context.now < over:
        return Again(repair.status.message or _waiting(fact))
    proof = _still_the_old_boot(repair, context, node, over)
    if isinstance(proof, NotDone):
        return proof
    # The boot budget may end with the order's budget, so the proof gets some time to arrive.
    last_moment = max(over, fact.given_at + policy.boot_timeout) + max(context.stale_after, PROOF_TIME)
    if context.now > last_moment:
        return End(Phase.HELD, f"cannot tell whether the {fact.order} was carried out: {proof.message}")
    return proof


def _budget(fact: OrderFact, policy: RepairPolicy) -> timedelta:
    return policy.graceful_timeout if fact.order == Order.RESTART else policy.boot_timeout


def _still_the_old_boot(
    repair: Repair, context: StepContext, node: Node | None, over: datetime
) -> NotDone | Again:
    """Return the proof that the order had no effect, or what is missing for it."""
    before, last = repair.status.pre_state, journal.entry(repair.status, NAME)
    if node is None or before is None or last is None or last.order is None:
        return Again("the node is not registered")
    missing = _no_report_of(before.boot_id, repair, context, over)
    if missing:
        return Again(missing)
    machine = context.provider.observe(before.machine)
    if not isinstance(machine, Machine) or machine.power is not Power.ON:
        return Again("the machine's controller does not say that the machine is on")
    beat = _heartbeat(repair, context)
    if not beat or not last.heartbeat or beat == last.heartbeat:
        text = "no heartbeat of the old boot since the time limit"
        return Again(text, facts=Facts(heartbeat=last.heartbeat or beat))
    reason = "the old boot still reports"
    fact = last.order.model_copy(update={"result": OrderResult.NO_EFFECT, "reason": reason})
    return NotDone(f"the {fact.order} had no effect: {reason}", Facts(order=fact))


def _no_report_of(boot_id: str, repair: Repair, context: StepContext, over: datetime) -> str:
    try:
        held = context.reports.newest(repair.node)
    except ReportsUnavailableError as error:
        return str(error)
    if held is None or held.report.boot_id != boot_id:
        return "no report of the old boot"
    if context.now - timedelta(seconds=held.age_seconds) <= over:
        return "no report of the old boot since the time limit"
    return ""


def _heartbeat(repair: Repair, context: StepContext) -> str:
    beat = context.reader.node_heartbeat(repair.node)
    return beat.isoformat() if beat else ""


def _waiting(fact: OrderFact) -> str:
    return f"the {fact.order} was ordered; waits for the new boot"


def _limit(policy: RepairPolicy) -> timedelta:
    """Return the time for both orders with their proof, plus the lifetime of an approval to reach the BMC."""
    return policy.approval_lifetime + policy.graceful_timeout + 2 * policy.boot_timeout


RESTART = Step(
    name=NAME,
    words=StepWords(doing="restarting the machine", done="restarted", news="begun"),
    look=restart,
    limit=_limit,
    once=True,
    destructive=True,
)
