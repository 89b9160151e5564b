"""Every step against the world: done, not done, unknown. Looking changes nothing, whatever the answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.incidents.progress import DrainFact, OrderFact, OrderResult, Phase
from reconciler.kube.results import CORDONED_BY, TAINT, UnavailableError
from reconciler.repair import journal
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.providers.provider import Order, OrderOutcome, Power
from reconciler.repair.resource import PreState, RepairStatus
from reconciler.repair.step import Act, Again, Done, End, Facts, NotDone, Step, StepResult
from reconciler.repair.steps.cordon import CORDON, UNCORDON
from reconciler.repair.steps.drain import DRAIN
from reconciler.repair.steps.lease import LOCK, lease_name
from reconciler.repair.steps.pre_state import PRE_STATE
from reconciler.repair.steps.restart import RESTART
from reconciler.repair.steps.revalidate import RECHECK, REVALIDATE
from tests.reconciler.harness import FAULT, GPUS, NEW, OLD, START, NodeHarness
from tests.reconciler.outside import CrashPoint

STEPS = {step.name: step for step in REBOOT.plans[REBOOT.version]}
RETURN, VERIFY = STEPS["return"], STEPS["verify"]
BEFORE = PreState(boot_id=OLD, power="on", unschedulable=False, machine="http://127.0.0.1:9/x", gpus=GPUS)
RIVAL = "bbbbbbbbbbbb"


def look(harness: NodeHarness, step: Step, status: RepairStatus | None = None) -> StepResult:
    """Ask one step, and prove that asking changed nothing."""
    crash = CrashPoint()
    context = harness.context(crash)
    repair = harness.repair()
    found = step.look(repair if status is None else replace(repair, status=status), context)
    if not (step is LOCK and isinstance(found, Done)):
        assert crash.count == 0
    return found


def act(found: StepResult) -> Any:
    assert isinstance(found, Act), found
    return found.do()


@pytest.fixture
def ours(harness: NodeHarness) -> str:
    return harness.order().action_id


def tried(
    order: Order = Order.RESTART, heartbeat: str = "", result: OrderResult = OrderResult.ACCEPTED
) -> RepairStatus:
    """Return the journal after an order was given at START."""
    fact = OrderFact(order=order, given_at=START, result=result)
    status = journal.remember(RepairStatus(), BEFORE)
    return journal.intend(status, RESTART, f"order a {order}", START, Facts(order=fact, heartbeat=heartbeat))


# ---- lock


def test_the_lease_is_taken_when_nobody_holds_it(harness: NodeHarness, ours: str) -> None:
    act(look(harness, LOCK))
    assert harness.marks()[2] == ours
    assert look(harness, LOCK) == Done("holds the lease")


def test_a_lease_that_was_left_is_taken(harness: NodeHarness, ours: str) -> None:
    hold(harness, RIVAL)
    lease = harness.context().reader.lease("clusterwright", lease_name(harness.node))
    assert lease is not None
    harness.context().writer.release_lease(lease_name(harness.node), lease)
    act(look(harness, LOCK))
    assert harness.marks()[2] == ours


def test_our_lease_is_renewed_only_once_it_is_ten_seconds_old(harness: NodeHarness, ours: str) -> None:
    hold(harness, ours)
    for seconds, renewed in ((10, False), (11, True)):
        harness.now = START + timedelta(seconds=seconds)
        look(harness, LOCK)
        lease = harness.context().reader.lease("clusterwright", lease_name(harness.node))
        assert lease is not None
        assert (lease.renewed_at == harness.now) == renewed


@pytest.mark.parametrize(
    ("status", "waits"),
    [
        ({"phase": "Running"}, True),
        ({"phase": "Failed", "released": False}, True),
        ({"phase": "Failed", "released": True}, False),
        (None, False),
    ],
    ids=["runs", "ends", "ended", "absent"],
)
def test_a_lease_of_another_action_is_waited_for_until_that_has_ended(
    harness: NodeHarness, ours: str, status: dict[str, Any] | None, waits: bool
) -> None:
    hold(harness, RIVAL)
    rival(harness, status)
    found = look(harness, LOCK)
    assert isinstance(found, Again if waits else Act)
    if isinstance(found, Again):
        assert RIVAL in found.message


def hold(harness: NodeHarness, holder: str) -> None:
    harness.context().writer.hold_lease(lease_name(harness.node), None, holder, START)


def rival(harness: NodeHarness, status: dict[str, Any] | None) -> None:
    if status is not None:
        name = f"{harness.node}-{RIVAL}"
        made = harness.context().writer.create_repair(
            name, {"recordPath": "p", "recordCommit": "c", "record": {}}
        )
        version = getattr(made, "resource_version", "")
        harness.context().writer.write_status(name, version, status)


# ---- cordon and uncordon


def test_a_node_is_cordoned_and_found_cordoned(harness: NodeHarness, ours: str) -> None:
    act(look(harness, CORDON))
    assert look(harness, CORDON) == Done("cordoned")
    act(look(harness, UNCORDON))
    assert look(harness, UNCORDON) == Done("gave the node back")


def test_a_cordon_of_somebody_else_is_told_apart(harness: NodeHarness, ours: str) -> None:
    harness.patch_node({"spec": {"unschedulable": True}})
    act(look(harness, CORDON))
    assert look(harness, CORDON) == Done("the node was cordoned already")


LIFTED: dict[str, dict[str, Any]] = {
    "uncordoned": {"unschedulable": None},
    "uncordoned and untainted": {"unschedulable": None, "taints": None},
    "untainted": {"taints": None},
}


@pytest.mark.parametrize("name", LIFTED)
def test_a_person_who_takes_our_marks_off_cancels(harness: NodeHarness, ours: str, name: str) -> None:
    act(look(harness, CORDON))
    harness.patch_node({"spec": LIFTED[name]})
    status = journal.done(RepairStatus(), CORDON, "cordoned", START)
    assert look(harness, CORDON, status) == End(Phase.CANCELLED, "somebody made the node schedulable again")


def test_a_person_who_uncordons_cancels_even_if_the_journal_missed_the_cordon(
    harness: NodeHarness, ours: str
) -> None:
    act(look(harness, CORDON))
    harness.patch_node({"spec": {"unschedulable": None}})
    assert look(harness, CORDON) == End(Phase.CANCELLED, "somebody made the node schedulable again")


@pytest.mark.parametrize(
    ("status", "waits"), [({"phase": "Running"}, True), (None, False)], ids=["runs", "absent"]
)
def test_marks_of_another_action_are_waited_for_until_that_has_ended(
    harness: NodeHarness, ours: str, status: dict[str, Any] | None, waits: bool
) -> None:
    rival(harness, status)
    node = harness.context().reader.node(harness.node)
    assert node is not None
    harness.context().writer.cordon(node, RIVAL)
    assert isinstance(look(harness, CORDON), Again if waits else Act)
    assert look(harness, UNCORDON) == Done("gave the node back")


# ---- drain


def test_an_empty_node_is_drained(harness: NodeHarness, ours: str) -> None:
    harness.pod("daemon", owner="DaemonSet")
    assert look(harness, DRAIN) == Done("no pod is left", Facts(DrainFact(pods_left=0)))


def test_pods_are_evicted_and_waited_for(harness: NodeHarness) -> None:
    harness.pod("a")
    harness.pod("b")
    harness.order("a", "b")
    assert act(look(harness, DRAIN)) == Again("waits for 2 pods to stop", facts=Facts(DrainFact(pods_left=2)))
    found = look(harness, DRAIN)
    assert isinstance(found, Again)
    assert found.message == f"waits for 2 pods to stop: default/{harness.node}-a, default/{harness.node}-b"
    harness.confirm_gone()
    assert look(harness, DRAIN) == Done("no pod is left", Facts(DrainFact(pods_left=0)))


def test_a_pod_that_nobody_approved_to_evict_ends_the_repair(harness: NodeHarness) -> None:
    harness.pod("a")
    harness.order("a")
    harness.pod("b")
    assert look(harness, DRAIN) == End(
        Phase.LAPSED, f"pods that nobody approved to evict: default/{harness.node}-b"
    )


def budget(harness: NodeHarness, name: str) -> dict[str, str]:
    labels = {"app": f"{harness.node}-{name}"}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": labels["app"]},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    assert (
        harness.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", body)[0]
        == 201
    )
    return labels


def test_a_blocked_pod_is_named_with_its_budget_and_does_not_keep_the_others(harness: NodeHarness) -> None:
    harness.pod("free")
    harness.pod("web", labels=budget(harness, "web"))
    harness.order("free", "web")
    found = act(look(harness, DRAIN))
    assert found.message.startswith(
        f"2 pods left: default/{harness.node}-web is blocked by PodDisruptionBudget {harness.node}-web ("
    )
    assert found.facts.drain.pods_left == 2
    (blocked,) = found.facts.drain.blocked
    assert (blocked.name, blocked.budgets) == (f"{harness.node}-web", (f"{harness.node}-web",))
    harness.confirm_gone()
    assert [each["metadata"]["name"] for each in harness.pods()] == [f"{harness.node}-web"]


def test_a_pod_that_was_created_again_under_its_name_is_another_pod(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    name = f"{harness.node}-train"
    path = f"/api/v1/namespaces/default/pods/{name}"
    assert harness.kube.request("DELETE", path, {"gracePeriodSeconds": 0})[0] == 200
    harness.pod("train")
    ended = End(Phase.LAPSED, f"pods that nobody approved to evict: default/{name}")
    assert look(harness, REVALIDATE) == ended
    assert look(harness, DRAIN) == ended


# ---- revalidate, pre-state, recheck


def test_an_order_that_fits_the_world_is_valid(harness: NodeHarness, ours: str) -> None:
    assert look(harness, REVALIDATE) == Done("the approval still fits")


def silent(harness: NodeHarness) -> None:
    harness.bot.reports.pop(harness.node)


def old_report(harness: NodeHarness) -> None:
    harness.report(OLD, FAULT, age=31)


def bot_down(harness: NodeHarness) -> None:
    harness.bot.down = True


def git_down(harness: NodeHarness) -> None:
    harness.git_valid = timedelta(0)


UNKNOWN = {
    "no report": (silent, "waits for a report of the node"),
    "an old report": (old_report, "waits for a fresh report of the node"),
    "the bot is down": (bot_down, "the bot answered 503"),
    "Git is down": (git_down, "Git cannot be read"),
}


@pytest.mark.parametrize("step", [REVALIDATE, RECHECK])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_waits(harness: NodeHarness, ours: str, name: str, step: Step) -> None:
    disturb, said = UNKNOWN[name]
    disturb(harness)
    found = look(harness, step)
    assert isinstance(found, Again)
    assert found.message == said


def booted(harness: NodeHarness) -> None:
    harness.boot(NEW)


def cleared(harness: NodeHarness) -> None:
    harness.report(OLD)


def closed(harness: NodeHarness) -> None:
    harness.files[f"{harness.directory}/closed.yaml"] = b""


def withdrawn(harness: NodeHarness) -> None:
    harness.put(
        harness.record(), harness.approval(harness.record(), via="other", action=harness.record().action)
    )
    harness.files[harness.path] = harness.files[harness.path].replace(b"nodeUid: ", b"nodeUid: x")


def expired(harness: NodeHarness) -> None:
    harness.now = START + timedelta(hours=2)
    harness.git_valid = timedelta(days=1)


def another_record(harness: NodeHarness) -> None:
    harness.put(harness.record().model_copy(update={"expires_at": START + timedelta(minutes=59)}))


def deleted(harness: NodeHarness) -> None:
    harness.kube.request("DELETE", f"/api/v1/nodes/{harness.node}")


CHANGED: dict[str, tuple[Callable[[NodeHarness], None], Phase]] = {
    "booted": (booted, Phase.LAPSED),
    "findings gone": (cleared, Phase.LAPSED),
    "incident closed": (closed, Phase.LAPSED),
    "record changed": (withdrawn, Phase.FAILED),
    "another record": (another_record, Phase.FAILED),
    "approval lapsed": (expired, Phase.LAPSED),
    "node deleted": (deleted, Phase.LAPSED),
}


@pytest.mark.parametrize("step", [REVALIDATE, RECHECK])
@pytest.mark.parametrize("name", CHANGED)
def test_what_has_changed_ends_the_repair(harness: NodeHarness, ours: str, name: str, step: Step) -> None:
    disturb, phase = CHANGED[name]
    disturb(harness)
    found = look(harness, step)
    assert isinstance(found, End)
    assert found.phase is phase, found.reason


def test_the_state_before_is_written_down_with_the_machine_it_is_about(
    harness: NodeHarness, ours: str
) -> None:
    harness.patch_node(
        {"spec": {"unschedulable": True, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}
    )
    found = look(harness, PRE_STATE)
    assert isinstance(found, Done)
    assert found.before == PreState(
        boot_id=OLD, power="on", unschedulable=True, taints=("a=b:NoSchedule",),
        machine=f"http://127.0.0.1:9/redfish/v1/Systems/{harness.node}", gpus=GPUS,
    )  # fmt: skip


def test_a_bmc_that_cannot_be_seen_is_waited_for_before_anything_is_touched(
    harness: NodeHarness, ours: str
) -> None:
    harness.bmc.blind = True
    found = look(harness, PRE_STATE)
    assert isinstance(found, Again)
    assert found.message == "BMC does not answer"


def test_a_node_without_bmc_ends_the_repair(harness: NodeHarness, ours: str) -> None:
    harness.patch_node({"metadata": {"labels": {"pool": "other"}}})
    assert look(harness, PRE_STATE) == End(
        Phase.FAILED, "the configuration names no redfish machine for this node"
    )


def test_a_pod_that_started_since_the_drain_holds_the_order_back(harness: NodeHarness) -> None:
    harness.pod("a")
    harness.order("a")
    assert look(harness, RECHECK) == Again("a pod has started on the node since the drain")


# ---- reset


def test_the_first_order_is_a_graceful_restart(harness: NodeHarness, ours: str) -> None:
    found = look(harness, RESTART, journal.remember(RepairStatus(), BEFORE))
    assert isinstance(found, Act)
    assert found.intent == "order a restart"
    assert found.facts.order == OrderFact(order=Order.RESTART, given_at=START)
    told = found.do()
    assert isinstance(told, Again)
    assert told.message == "the restart was ordered; waits for the new boot"
    assert told.facts.order is not None
    assert told.facts.order.result is OrderResult.ACCEPTED
    assert harness.bmc.orders == [Order.RESTART]


BOTH = frozenset(Order)
OFFERS: dict[str, tuple[frozenset[Order], int, Order | None]] = {
    "both, first": (BOTH, 0, Order.RESTART),
    "both, second": (BOTH, 1, Order.FORCE_RESTART),
    "forced only, first": (frozenset({Order.FORCE_RESTART}), 0, Order.FORCE_RESTART),
    "forced only, second": (frozenset({Order.FORCE_RESTART}), 1, Order.FORCE_RESTART),
    "restart only, first": (frozenset({Order.RESTART}), 0, Order.RESTART),
    "restart only, second": (frozenset({Order.RESTART}), 1, None),
    "neither, first": (frozenset(), 0, None),
    "both, third": (BOTH, 2, None),
}


@pytest.mark.parametrize("name", OFFERS)
def test_the_second_order_is_forced_and_there_is_no_third(harness: NodeHarness, ours: str, name: str) -> None:
    offered, attempts, expected = OFFERS[name]
    harness.bmc.offered = offered
    status = journal.remember(RepairStatus(), BEFORE)
    for _ in range(attempts):
        status = journal.not_done(journal.intend(status, RESTART, "x", START), "reset", "no effect", START)
    found = look(harness, RESTART, status)
    if expected is None:
        assert isinstance(found, End)
        assert found.phase is Phase.FAILED
    else:
        assert isinstance(found, Act)
        assert found.facts.order is not None
        assert found.facts.order.order == expected


POWERS: dict[Power, type[StepResult]] = {Power.ON: Act, Power.OFF: End, Power.CHANGING: Again}


@pytest.mark.parametrize("power", POWERS)
def test_only_a_machine_that_is_on_is_restarted(harness: NodeHarness, ours: str, power: Power) -> None:
    harness.bmc.power = power
    assert isinstance(look(harness, RESTART, journal.remember(RepairStatus(), BEFORE)), POWERS[power])


def test_a_bmc_that_cannot_be_seen_is_sent_nothing(harness: NodeHarness, ours: str) -> None:
    harness.bmc.blind = True
    assert isinstance(look(harness, RESTART, journal.remember(RepairStatus(), BEFORE)), Again)


def test_a_pass_that_took_too_long_sends_nothing(harness: NodeHarness, ours: str) -> None:
    found = look(harness, RESTART, journal.remember(RepairStatus(), BEFORE))
    harness.now += timedelta(seconds=16)
    told = act(found)
    assert isinstance(told, NotDone)
    assert told.message == "the restart was not sent: this pass took too long"
    assert told.facts.order.result is OrderResult.NOT_SENT
    assert harness.bmc.orders == []


CERTAIN = {OrderResult.NOT_SENT: "was not sent", OrderResult.REFUSED: "was refused"}


@pytest.mark.parametrize("result", CERTAIN)
def test_an_order_that_was_not_taken_was_certainly_not_carried_out(
    harness: NodeHarness, ours: str, result: OrderResult
) -> None:
    harness.bmc.say = OrderOutcome(result, "not supported")
    told = act(look(harness, RESTART, journal.remember(RepairStatus(), BEFORE)))
    assert isinstance(told, NotDone)
    assert told.message == f"the restart {CERTAIN[result]}: not supported"
    assert told.facts.order.result is result


def test_after_a_lost_reply_the_boot_id_decides(harness: NodeHarness, ours: str) -> None:
    harness.bmc.say = OrderOutcome(OrderResult.UNKNOWN, "no answer")
    told = act(look(harness, RESTART, journal.remember(RepairStatus(), BEFORE)))
    assert isinstance(told, Again)
    assert told.message == "the restart: no answer; a new boot ID will show whether it was carried out"
    status = tried(result=OrderResult.UNKNOWN)
    assert isinstance(look(harness, RESTART, status), Again)
    harness.pass_time(80)
    done = look(harness, RESTART, status)
    assert isinstance(done, Done)
    assert done.new_boot_id == NEW


@pytest.mark.parametrize("result", [OrderResult.NOT_SENT, OrderResult.REFUSED])
def test_a_provider_that_remembers_the_order_decides_after_a_crash(
    harness: NodeHarness, ours: str, result: OrderResult
) -> None:
    harness.bmc.knows = OrderOutcome(result, "by my log")
    found = look(harness, RESTART, tried(result=OrderResult.UNKNOWN))
    assert isinstance(found, NotDone)
    assert found.facts.order is not None
    assert found.facts.order.result is result


def beating(harness: NodeHarness) -> None:
    """Nothing is wrong: the old boot reports and beats since the time limit."""


def no_report(harness: NodeHarness) -> None:
    harness.bot.reports.pop(harness.node)


def early_report(harness: NodeHarness) -> None:
    harness.report(OLD, FAULT, age=25)


def new_agent(harness: NodeHarness) -> None:
    harness.report(NEW)


def power_off(harness: NodeHarness) -> None:
    harness.bmc.power = Power.OFF


def bmc_blind(harness: NodeHarness) -> None:
    harness.bmc.blind = True


PROOFS: dict[str, tuple[Callable[[NodeHarness], None], bool, str]] = {
    "all of it": (beating, True, "the restart had no effect: the old boot still reports"),
    "no report": (no_report, True, "no report of the old boot"),
    "a report from before": (early_report, True, "no report of the old boot since the time limit"),
    "a report of a new boot": (new_agent, True, "no report of the old boot"),
    "the bot is down": (bot_down, True, "the bot answered 503"),
    "power off": (power_off, True, "the machine's controller does not say that the machine is on"),
    "BMC blind": (bmc_blind, True, "the machine's controller does not say that the machine is on"),
    "heartbeat stands still": (beating, False, "no heartbeat of the old boot since the time limit"),
    "node deleted": (deleted, True, "the node is not registered"),
}


@pytest.mark.parametrize("name", PROOFS)
def test_only_a_whole_proof_allows_a_second_order(harness: NodeHarness, ours: str, name: str) -> None:
    disturb, beats, said = PROOFS[name]
    beat = harness.context().reader.node_heartbeat(harness.node)
    assert beat is not None
    status = tried(heartbeat=beat.isoformat())
    if beats:
        harness.beat()
    disturb(harness)

    harness.now = START + timedelta(seconds=22)
    found = look(harness, RESTART, status)
    assert isinstance(found, NotDone if name == "all of it" else Again)
    assert found.message == said

    harness.now = START + timedelta(seconds=91)
    if name != "a report from before":
        found = look(harness, RESTART, status)
        assert isinstance(found, NotDone if name == "all of it" else End)
    if isinstance(found, End):
        assert (found.phase, said in found.reason) == (Phase.HELD, True)


def test_before_the_time_is_over_nothing_is_asked_and_nothing_sent(harness: NodeHarness, ours: str) -> None:
    harness.now = START + timedelta(seconds=19)
    assert isinstance(look(harness, RESTART, tried()), Again)
    harness.now = START + timedelta(seconds=59)
    assert isinstance(look(harness, RESTART, tried(Order.FORCE_RESTART)), Again)


def test_the_first_heartbeat_after_the_time_is_only_remembered(harness: NodeHarness, ours: str) -> None:
    harness.now = START + timedelta(seconds=22)
    found = look(harness, RESTART, tried())
    assert isinstance(found, Again)
    beat = harness.context().reader.node_heartbeat(harness.node)
    assert beat is not None
    assert found.facts.heartbeat == beat.isoformat()


def test_a_boot_that_nobody_ordered_is_not_ours(harness: NodeHarness, ours: str) -> None:
    harness.boot(NEW)
    status = journal.remember(RepairStatus(), BEFORE)
    assert not isinstance(look(harness, RESTART, status), Done)
    assert isinstance(look(harness, RECHECK, status), End)


def test_an_order_that_works_after_it_was_given_up_counts(harness: NodeHarness, ours: str) -> None:
    harness.boot(NEW)
    status = journal.not_done(tried(), "reset", "no effect", START)
    assert look(harness, RECHECK, status) == Done("an earlier order has taken effect")
    assert isinstance(look(harness, RESTART, status), Done)


# ---- return and verify


def back(harness: NodeHarness) -> RepairStatus:
    beat = harness.context().reader.node_heartbeat(harness.node)
    assert beat is not None
    return journal.done(tried(), RESTART, "the node has booted", START, Facts(heartbeat=beat.isoformat()))


RETURNS: dict[str, tuple[dict[str, Any], str]] = {
    "not ready": ({"ready": False}, "the node is not ready"),
    "a GPU short": ({"gpus": 7}, "the node offers 7 of 8 GPUs"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_node_that_is_not_whole_yet_is_waited_for(harness: NodeHarness, ours: str, name: str) -> None:
    changes, said = RETURNS[name]
    status = back(harness)
    harness.beat()
    harness.boot(NEW, **changes)
    harness.now = START + timedelta(seconds=60)
    assert look(harness, RETURN, status) == Again(said)
    harness.boot(NEW)
    assert isinstance(look(harness, RETURN, status), Done)


def test_a_node_is_back_only_once_its_heartbeat_has_changed(harness: NodeHarness, ours: str) -> None:
    status = back(harness)
    harness.boot(NEW)
    found = look(harness, RETURN, status)
    assert isinstance(found, Again)
    assert found.message == "the node's heartbeat has not moved since its boot"
    harness.beat()
    assert look(harness, RETURN, status) == Done("the node is back", new_boot_id=NEW)


def test_a_node_that_registers_again_after_the_restart_is_marked_again(
    harness: NodeHarness, ours: str
) -> None:
    status = back(harness)
    deleted(harness)
    found = look(harness, RETURN, status)
    assert isinstance(found, Again)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": harness.node}}
    assert harness.kube.request("POST", "/api/v1/nodes", node)[0] == 201
    harness.boot(NEW, ready=False)
    act(look(harness, RETURN, status))
    raw = harness.raw_node()
    assert raw["spec"]["unschedulable"]
    assert TAINT in [each["key"] for each in raw["spec"]["taints"]]
    assert raw["metadata"]["annotations"][CORDONED_BY] == ours
    assert isinstance(look(harness, RETURN, status), Again)
    harness.boot(NEW)
    harness.beat()
    assert isinstance(look(harness, RETURN, status), Done)


def verified(harness: NodeHarness) -> None:
    harness.report(NEW)


def sick(harness: NodeHarness) -> None:
    harness.report(NEW, FAULT)


def not_ready(harness: NodeHarness) -> None:
    harness.report(NEW)
    harness.boot(NEW, ready=False)


VERIFICATIONS: dict[str, tuple[Callable[[NodeHarness], None], str, Phase | None]] = {
    "the old boot's report": (beating, "no report from the new boot", None),
    "a finding": (sick, f"found after the boot: {FAULT.summary}", None),
    "not ready": (not_ready, "the node is not ready", None),
    "the bot is down": (bot_down, "cannot verify the node: the bot answered 503", Phase.HELD),
}


@pytest.mark.parametrize("name", VERIFICATIONS)
def test_a_node_that_is_not_well_is_waited_for(harness: NodeHarness, ours: str, name: str) -> None:
    disturb, said, phase = VERIFICATIONS[name]
    status = journal.done(back(harness), RETURN, "the node is back", START)
    harness.boot(NEW)
    disturb(harness)
    harness.now = START + timedelta(seconds=60)
    found = look(harness, VERIFY, status)
    assert isinstance(found, Again)
    assert (found.message, found.late) == (said, phase)

    harness.bot.down = False
    harness.boot(NEW)
    harness.report(NEW)
    assert isinstance(look(harness, VERIFY, status), Done)


def test_a_report_from_before_the_return_verifies_nothing(harness: NodeHarness, ours: str) -> None:
    status = journal.done(back(harness), RETURN, "the node is back", START)
    harness.boot(NEW)
    harness.report(NEW, age=5)
    harness.now = START + timedelta(seconds=4)
    assert isinstance(look(harness, VERIFY, status), Again)
    harness.now = START + timedelta(seconds=6)
    assert isinstance(look(harness, VERIFY, status), Done)


# ---- all of them


@pytest.mark.parametrize("name", STEPS)
def test_an_api_server_that_is_away_is_unknown_to_every_step(
    harness: NodeHarness, ours: str, name: str
) -> None:
    repair = replace(harness.repair(), status=tried())
    harness.kube.pause()
    try:
        with pytest.raises(UnavailableError):
            STEPS[name].look(repair, harness.context())
    finally:
        harness.kube.resume()


def test_every_step_has_a_limit_within_a_day_and_words(harness: NodeHarness) -> None:
    policy = harness.config.policy
    for step in STEPS.values():
        assert timedelta(0) < step.limit(policy) <= timedelta(days=1), step.name
        assert step.words.doing, step.name
        assert step.words.done, step.name


def test_one_step_of_a_reboot_is_destructive_and_comes_after_the_drain_and_the_recheck() -> None:
    names = list(STEPS)
    (destructive,) = [step.name for step in STEPS.values() if step.destructive]
    assert names.index("drain") < names.index("recheck") < names.index(destructive)
