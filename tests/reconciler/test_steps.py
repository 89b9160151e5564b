"""Every step against the world: done, not done, unknown. Looking changes nothing, whatever the answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from reconciler.repair.comeback import come_back, confirm
from reconciler.repair.drain import drain
from reconciler.repair.hold import cordon, lease_name, lock, uncordon
from reconciler.repair.providers.machine import OFF, Refused, Unknown
from reconciler.repair.reset import FORCED, GRACEFUL, reset
from reconciler.repair.revalidate import recheck, record_pre_state, revalidate
from reconciler.repair.scene import Look, Scene

from reconciler.incidents.progress import Phase
from reconciler.kube.results import CORDONED_BY, TAINT, UnavailableError
from reconciler.repair import journal
from reconciler.repair.executor import LOOK
from reconciler.repair.resource import PreState, Repair, RepairStatus
from reconciler.repair.step import Act, Again, Done, End, NotDone
from reconciler.repair.steps import CORDON, DRAIN, RESET, RETURN, STEPS
from tests.reconciler.site import FAULT, GPUS, NEW, OLD, START, Fuse, Site

BEFORE = PreState(boot_id=OLD, power="On", unschedulable=False, system="http://127.0.0.1:9/x", gpus=GPUS)
RIVAL = "bbbbbbbbbbbb"
Step = Callable[[Repair, Scene], Look]


def look(site: Site, step: Step, status: RepairStatus | None = None) -> Look:
    """Ask one step, and prove that asking changed nothing."""
    fuse = Fuse()
    scene = site.clients(fuse)
    repair = site.repair()
    found = step(repair if status is None else replace(repair, status=status), scene)
    if not (step is lock and isinstance(found, Done)):
        assert fuse.count == 0
    return found


def act(found: Look) -> Any:
    assert isinstance(found, Act), found
    return found.do()


@pytest.fixture
def ours(site: Site) -> str:
    return site.order().action_id


def tried(kind: str = GRACEFUL, seen: str = "") -> RepairStatus:
    status = journal.remember(RepairStatus(), BEFORE)
    return journal.saw(journal.intend(status, RESET, kind, START), RESET, seen)


# ---- lock


def test_the_lease_is_taken_when_nobody_holds_it(site: Site, ours: str) -> None:
    act(look(site, lock))
    assert site.marks()[2] == ours
    assert look(site, lock) == Done("holds the lease")


def test_a_lease_that_was_left_is_taken(site: Site, ours: str) -> None:
    hold(site, RIVAL)
    lease = site.clients().reader.lease("clusterwright", lease_name(site.node))
    assert lease is not None
    site.clients().writer.release_lease(lease_name(site.node), lease)
    act(look(site, lock))
    assert site.marks()[2] == ours


def test_our_lease_is_renewed_only_once_it_is_ten_seconds_old(site: Site, ours: str) -> None:
    hold(site, ours)
    for seconds, renewed in ((10, False), (11, True)):
        site.now = START + timedelta(seconds=seconds)
        look(site, lock)
        lease = site.clients().reader.lease("clusterwright", lease_name(site.node))
        assert lease is not None
        assert (lease.renewed_at == site.now) == renewed


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([], True),
        ([{"name": "release", "state": "intent"}], True),
        ([{"name": "release", "state": "done"}], False),
        (None, False),
    ],
    ids=["runs", "ends", "ended", "absent"],
)
def test_a_lease_of_another_action_is_waited_for_until_that_has_ended(
    site: Site, ours: str, steps: list[dict[str, str]] | None, waits: bool
) -> None:
    hold(site, RIVAL)
    rival(site, steps)
    found = look(site, lock)
    assert isinstance(found, Again if waits else Act)
    if isinstance(found, Again):
        assert RIVAL in found.message


def hold(site: Site, holder: str) -> None:
    site.clients().writer.hold_lease(lease_name(site.node), None, holder, START)


def rival(site: Site, steps: list[dict[str, str]] | None) -> None:
    if steps is not None:
        name = f"{site.node}-{RIVAL}"
        made = site.clients().writer.create_repair(
            name, {"recordPath": "p", "recordCommit": "c", "record": {}}
        )
        version = getattr(made, "resource_version", "")
        site.clients().writer.write_status(name, version, {"steps": steps, "phase": "Failed"})


# ---- cordon and uncordon


def test_a_node_is_cordoned_and_found_cordoned(site: Site, ours: str) -> None:
    act(look(site, cordon))
    assert look(site, cordon) == Done("cordoned")
    act(look(site, uncordon))
    assert look(site, uncordon) == Done("gave the node back")


def test_a_cordon_of_somebody_else_is_told_apart(site: Site, ours: str) -> None:
    site.patch_node({"spec": {"unschedulable": True}})
    act(look(site, cordon))
    assert look(site, cordon) == Done("the node was cordoned already")


LIFTED: dict[str, dict[str, Any]] = {
    "uncordoned": {"unschedulable": None},
    "uncordoned and untainted": {"unschedulable": None, "taints": None},
    "untainted": {"taints": None},
}


@pytest.mark.parametrize("name", LIFTED)
def test_a_person_who_takes_our_marks_off_cancels(site: Site, ours: str, name: str) -> None:
    act(look(site, cordon))
    site.patch_node({"spec": LIFTED[name]})
    status = journal.done(RepairStatus(), CORDON, "cordoned", START)
    assert look(site, cordon, status) == End(Phase.CANCELLED, "somebody made the node schedulable again")


def test_a_person_who_uncordons_cancels_even_if_the_journal_missed_the_cordon(site: Site, ours: str) -> None:
    act(look(site, cordon))
    site.patch_node({"spec": {"unschedulable": None}})
    assert look(site, cordon) == End(Phase.CANCELLED, "somebody made the node schedulable again")


@pytest.mark.parametrize(("steps", "waits"), [([], True), (None, False)], ids=["runs", "absent"])
def test_marks_of_another_action_are_waited_for_until_that_has_ended(
    site: Site, ours: str, steps: list[dict[str, str]] | None, waits: bool
) -> None:
    rival(site, steps)
    node = site.clients().reader.node(site.node)
    assert node is not None
    site.clients().writer.cordon(node, RIVAL)
    assert isinstance(look(site, cordon), Again if waits else Act)
    assert look(site, uncordon) == Done("gave the node back")


# ---- drain


def test_an_empty_node_is_drained(site: Site, ours: str) -> None:
    site.pod("daemon", owner="DaemonSet")
    assert look(site, drain) == Done("no pod is left")


def test_pods_are_evicted_and_waited_for(site: Site) -> None:
    site.order("a", "b")
    site.pod("a")
    site.pod("b")
    assert act(look(site, drain)) == Again("waits for 2 pods to stop")
    found = look(site, drain)
    assert isinstance(found, Again)
    assert found.message == f"waits for 2 pods to stop: default/{site.node}-a, default/{site.node}-b"
    site.confirm_gone()
    assert look(site, drain) == Done("no pod is left")


def test_a_pod_that_nobody_approved_to_evict_ends_the_repair(site: Site) -> None:
    site.order("a")
    site.pod("a")
    site.pod("b")
    assert look(site, drain) == End(
        Phase.LAPSED, f"pods that nobody approved to evict: default/{site.node}-b"
    )


def budget(site: Site, name: str) -> dict[str, str]:
    labels = {"app": f"{site.node}-{name}"}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": labels["app"]},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    assert (
        site.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", body)[0] == 201
    )
    return labels


def test_a_blocked_pod_is_named_with_its_budget_and_does_not_keep_the_others(site: Site) -> None:
    site.order("free", "web")
    site.pod("free")
    site.pod("web", labels=budget(site, "web"))
    found = act(look(site, drain))
    assert found.message.startswith(
        f"2 pods left: default/{site.node}-web is blocked by PodDisruptionBudget {site.node}-web ("
    )
    site.confirm_gone()
    assert [each["metadata"]["name"] for each in site.pods()] == [f"{site.node}-web"]


def test_a_drain_has_an_end(site: Site) -> None:
    site.order("web")
    site.pod("web")
    status = journal.intend(RepairStatus(), DRAIN, "who blocks it", START)
    site.now = START + timedelta(seconds=60)
    assert isinstance(look(site, drain, status), Act)
    site.now = START + timedelta(seconds=61)
    assert look(site, drain, status) == End(Phase.HELD, "the drain did not end within 0:01:00: who blocks it")


# ---- revalidate, pre-state, recheck


def test_an_order_that_fits_the_world_is_valid(site: Site, ours: str) -> None:
    assert look(site, revalidate) == Done("the approval still fits")


def silent(site: Site) -> None:
    site.bot.reports.pop(site.node)


def old_report(site: Site) -> None:
    site.report(OLD, FAULT, age=31)


def bot_down(site: Site) -> None:
    site.bot.down = True


def git_down(site: Site) -> None:
    site.git_valid = timedelta(0)


UNKNOWN = {
    "no report": (silent, "waits for a report of the node"),
    "an old report": (old_report, "waits for a fresh report of the node"),
    "the bot is down": (bot_down, "waits: the bot answered 503"),
    "Git is down": (git_down, "waits: Git cannot be read"),
}


@pytest.mark.parametrize("step", [revalidate, recheck])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_waits(site: Site, ours: str, name: str, step: Step) -> None:
    disturb, said = UNKNOWN[name]
    disturb(site)
    found = look(site, step)
    assert isinstance(found, Again)
    assert found.message == said


def booted(site: Site) -> None:
    site.boot(NEW)


def cleared(site: Site) -> None:
    site.report(OLD)


def closed(site: Site) -> None:
    site.files[f"{site.directory}/closed.yaml"] = b""


def withdrawn(site: Site) -> None:
    site.put(site.record(), site.approval(site.record(), via="other", action=site.record().action))
    site.files[site.path] = site.files[site.path].replace(b"nodeUid: ", b"nodeUid: x")


def expired(site: Site) -> None:
    site.now = START + timedelta(hours=2)
    site.git_valid = timedelta(days=1)


def another_record(site: Site) -> None:
    site.put(site.record().model_copy(update={"expires_at": START + timedelta(minutes=59)}))


def deleted(site: Site) -> None:
    site.kube.request("DELETE", f"/api/v1/nodes/{site.node}")


CHANGED: dict[str, tuple[Callable[[Site], None], Phase]] = {
    "booted": (booted, Phase.LAPSED),
    "findings gone": (cleared, Phase.LAPSED),
    "incident closed": (closed, Phase.LAPSED),
    "record changed": (withdrawn, Phase.FAILED),
    "another record": (another_record, Phase.FAILED),
    "approval lapsed": (expired, Phase.LAPSED),
    "node deleted": (deleted, Phase.LAPSED),
}


@pytest.mark.parametrize("step", [revalidate, recheck])
@pytest.mark.parametrize("name", CHANGED)
def test_what_has_changed_ends_the_repair(site: Site, ours: str, name: str, step: Step) -> None:
    disturb, phase = CHANGED[name]
    disturb(site)
    found = look(site, step)
    assert isinstance(found, End)
    assert found.phase is phase, found.reason


def test_the_state_before_is_written_down_with_the_machine_it_is_about(site: Site, ours: str) -> None:
    site.patch_node(
        {"spec": {"unschedulable": True, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}}
    )
    found = look(site, record_pre_state)
    assert isinstance(found, Done)
    assert found.before == PreState(
        boot_id=OLD, power="On", unschedulable=True, taints=("a=b:NoSchedule",),
        system=f"http://127.0.0.1:9/redfish/v1/Systems/{site.node}", gpus=GPUS,
    )  # fmt: skip


def test_a_bmc_that_cannot_be_seen_is_waited_for_before_anything_is_touched(site: Site, ours: str) -> None:
    site.bmc.blind = True
    found = look(site, record_pre_state)
    assert isinstance(found, Again)
    assert found.message == "waits for the BMC: BMC does not answer"


def test_a_node_without_bmc_ends_the_repair(site: Site, ours: str) -> None:
    site.patch_node({"metadata": {"labels": {"pool": "other"}}})
    assert look(site, record_pre_state) == End(Phase.FAILED, "the configuration names no BMC for this node")


def test_a_pod_that_slipped_in_sends_the_repair_back_to_drain(site: Site) -> None:
    site.order("a")
    site.pod("a")
    assert look(site, recheck) == Again("a pod has slipped in")


# ---- reset


def test_the_first_order_is_a_graceful_restart(site: Site, ours: str) -> None:
    found = look(site, reset, journal.remember(RepairStatus(), BEFORE))
    assert isinstance(found, Act)
    assert found.intent == GRACEFUL
    assert found.do() == Again("GracefulRestart was sent; waits for the new boot")
    assert site.bmc.orders == [GRACEFUL]


OFFERS: dict[str, tuple[tuple[str, ...], int, str | None]] = {
    "both, first": (("On", GRACEFUL, FORCED), 0, GRACEFUL),
    "both, second": (("On", GRACEFUL, FORCED), 1, FORCED),
    "not told, first": ((), 0, GRACEFUL),
    "not told, second": ((), 1, FORCED),
    "forced only, first": ((FORCED,), 0, FORCED),
    "forced only, second": ((FORCED,), 1, FORCED),
    "graceful only, first": ((GRACEFUL,), 0, GRACEFUL),
    "graceful only, second": ((GRACEFUL,), 1, None),
    "neither, first": (("On",), 0, None),
    "both, third": (("On", GRACEFUL, FORCED), 2, None),
}


@pytest.mark.parametrize("name", OFFERS)
def test_the_second_order_is_forced_and_there_is_no_third(site: Site, ours: str, name: str) -> None:
    offered, attempts, expected = OFFERS[name]
    site.bmc.offered = offered
    status = journal.remember(RepairStatus(), BEFORE)
    for _ in range(attempts):
        status = journal.not_done(journal.intend(status, RESET, "x", START), RESET, "no effect", START)
    found = look(site, reset, status)
    if expected is None:
        assert isinstance(found, End)
        assert found.phase is Phase.FAILED
    else:
        assert isinstance(found, Act)
        assert found.intent == expected


POWERS: dict[str, type[Look]] = {"On": Act, "Off": End, "PoweringOn": Again, "Paused": Again}


@pytest.mark.parametrize("power", POWERS)
def test_only_a_machine_that_is_on_is_reset(site: Site, ours: str, power: str) -> None:
    site.bmc.power = power
    assert isinstance(look(site, reset, journal.remember(RepairStatus(), BEFORE)), POWERS[power])


def test_a_bmc_that_cannot_be_seen_is_sent_nothing(site: Site, ours: str) -> None:
    site.bmc.blind = True
    assert isinstance(look(site, reset, journal.remember(RepairStatus(), BEFORE)), Again)


def test_a_pass_that_took_too_long_sends_nothing(site: Site, ours: str) -> None:
    found = look(site, reset, journal.remember(RepairStatus(), BEFORE))
    site.now += timedelta(seconds=16)
    assert act(found) == NotDone("GracefulRestart was not sent: this pass took too long")
    assert site.bmc.orders == []


def test_an_order_that_was_refused_was_certainly_not_carried_out(site: Site, ours: str) -> None:
    site.bmc.say = Refused("not supported")
    assert act(look(site, reset, journal.remember(RepairStatus(), BEFORE))) == NotDone(
        "GracefulRestart: not supported"
    )


def test_after_a_lost_reply_the_boot_id_decides(site: Site, ours: str) -> None:
    site.bmc.say = Unknown("no answer")
    found = act(look(site, reset, journal.remember(RepairStatus(), BEFORE)))
    assert found == Again("GracefulRestart: no answer; the boot id will tell")
    done = look(site, reset, tried())
    assert isinstance(done, Done)
    assert done.new_boot_id == NEW


def beating(site: Site) -> None:
    """Nothing is wrong: the old boot reports and beats since the time was over."""


def no_report(site: Site) -> None:
    site.bot.reports.pop(site.node)


def early_report(site: Site) -> None:
    site.report(OLD, FAULT, age=25)


def new_agent(site: Site) -> None:
    site.report(NEW)


def power_off(site: Site) -> None:
    site.bmc.power = OFF


def bmc_blind(site: Site) -> None:
    site.bmc.blind = True


PROOFS: dict[str, tuple[Callable[[Site], None], bool, str]] = {
    "all of it": (beating, True, "GracefulRestart had no effect: the old boot still reports"),
    "no report": (no_report, True, "no report of the old boot"),
    "a report from before": (early_report, True, "no report of the old boot since the time was over"),
    "a report of a new boot": (new_agent, True, "no report of the old boot"),
    "the bot is down": (bot_down, True, "the bot answered 503"),
    "power off": (power_off, True, "the BMC does not say that the machine is on"),
    "BMC blind": (bmc_blind, True, "the BMC does not say that the machine is on"),
    "heartbeat stands still": (beating, False, "no heartbeat of the old boot since the time was over"),
    "node deleted": (deleted, True, "the node is not registered"),
}


@pytest.mark.parametrize("name", PROOFS)
def test_only_a_whole_proof_allows_a_second_order(site: Site, ours: str, name: str) -> None:
    disturb, beats, said = PROOFS[name]
    beat = site.clients().reader.node_heartbeat(site.node)
    assert beat is not None
    status = tried(seen=beat.isoformat())
    if beats:
        site.beat()
    disturb(site)

    site.now = START + timedelta(seconds=22)
    found = look(site, reset, status)
    assert isinstance(found, NotDone if name == "all of it" else Again)
    assert found.message == said

    site.now = START + timedelta(seconds=91)
    if name != "a report from before":
        found = look(site, reset, status)
        assert isinstance(found, NotDone if name == "all of it" else End)
    if isinstance(found, End):
        assert (found.phase, said in found.reason) == (Phase.HELD, True)


def test_before_the_time_is_over_nothing_is_asked_and_nothing_sent(site: Site, ours: str) -> None:
    site.now = START + timedelta(seconds=19)
    assert isinstance(look(site, reset, tried()), Again)
    site.now = START + timedelta(seconds=59)
    assert isinstance(look(site, reset, tried(FORCED)), Again)


def test_the_first_heartbeat_after_the_time_is_only_remembered(site: Site, ours: str) -> None:
    site.now = START + timedelta(seconds=22)
    found = look(site, reset, tried())
    assert isinstance(found, Again)
    beat = site.clients().reader.node_heartbeat(site.node)
    assert beat is not None
    assert found.seen == beat.isoformat()


def test_a_boot_that_nobody_ordered_is_not_ours(site: Site, ours: str) -> None:
    site.boot(NEW)
    status = journal.remember(RepairStatus(), BEFORE)
    assert not isinstance(look(site, reset, status), Done)
    assert isinstance(look(site, recheck, status), End)


def test_a_reset_that_works_after_it_was_given_up_counts(site: Site, ours: str) -> None:
    site.boot(NEW)
    status = journal.not_done(tried(), RESET, "no effect", START)
    assert look(site, recheck, status) == Done("an earlier reset has worked")
    assert isinstance(look(site, reset, status), Done)


# ---- return and verify


def back(site: Site) -> RepairStatus:
    beat = site.clients().reader.node_heartbeat(site.node)
    assert beat is not None
    return journal.done(tried(), RESET, "the node has booted", START, beat.isoformat())


RETURNS: dict[str, tuple[dict[str, Any], str]] = {
    "not ready": ({"ready": False}, "the node is not ready"),
    "a GPU short": ({"gpus": 7}, "the node offers 7 of 8 GPUs"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_node_that_is_not_whole_yet_is_waited_for_and_then_held(site: Site, ours: str, name: str) -> None:
    changes, said = RETURNS[name]
    status = back(site)
    site.beat()
    site.boot(NEW, **changes)
    site.now = START + timedelta(seconds=60)
    assert look(site, come_back, status) == Again(f"waits: {said}")
    site.now = START + timedelta(seconds=61)
    assert look(site, come_back, status) == End(Phase.HELD, f"the node did not come back: {said}")
    site.boot(NEW)
    assert isinstance(look(site, come_back, status), Done)


def test_a_node_is_back_only_once_its_heart_beats(site: Site, ours: str) -> None:
    status = back(site)
    site.boot(NEW)
    found = look(site, come_back, status)
    assert isinstance(found, Again)
    assert found.message == "waits: the node's heartbeat has not moved since its boot"
    site.beat()
    assert look(site, come_back, status) == Done("the node is back", new_boot_id=NEW)


def test_a_node_that_registers_anew_after_the_reset_is_marked_again(site: Site, ours: str) -> None:
    status = back(site)
    deleted(site)
    found = look(site, come_back, status)
    assert isinstance(found, Again)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": site.node}}
    assert site.kube.request("POST", "/api/v1/nodes", node)[0] == 201
    site.boot(NEW, ready=False)
    act(look(site, come_back, status))
    raw = site.raw_node()
    assert raw["spec"]["unschedulable"]
    assert TAINT in [each["key"] for each in raw["spec"]["taints"]]
    assert raw["metadata"]["annotations"][CORDONED_BY] == ours
    assert isinstance(look(site, come_back, status), Again)
    site.boot(NEW)
    site.beat()
    assert isinstance(look(site, come_back, status), Done)


def verified(site: Site) -> None:
    site.report(NEW)


def sick(site: Site) -> None:
    site.report(NEW, FAULT)


def not_ready(site: Site) -> None:
    site.report(NEW)
    site.boot(NEW, ready=False)


VERIFICATIONS: dict[str, tuple[Callable[[Site], None], str, Phase]] = {
    "the old boot's report": (beating, "no report from the new boot", Phase.FAILED),
    "a finding": (sick, f"found after the boot: {FAULT.summary}", Phase.FAILED),
    "not ready": (not_ready, "the node is not ready", Phase.FAILED),
    "the bot is down": (bot_down, "cannot verify the node: the bot answered 503", Phase.HELD),
}


@pytest.mark.parametrize("name", VERIFICATIONS)
def test_a_node_that_is_not_well_is_waited_for_and_then_ends_the_repair(
    site: Site, ours: str, name: str
) -> None:
    disturb, said, phase = VERIFICATIONS[name]
    status = journal.done(back(site), RETURN, "the node is back", START)
    site.boot(NEW)
    disturb(site)
    site.now = START + timedelta(seconds=60)
    found = look(site, confirm, status)
    assert isinstance(found, Again)
    assert found.message == f"waits: {said}"
    site.now = START + timedelta(seconds=61)
    found = look(site, confirm, status)
    assert isinstance(found, End)
    assert (found.phase, said in found.reason) == (phase, True)

    site.bot.down = False
    site.boot(NEW)
    site.report(NEW)
    assert isinstance(look(site, confirm, status), Done)


def test_a_report_from_before_the_return_verifies_nothing(site: Site, ours: str) -> None:
    status = journal.done(back(site), RETURN, "the node is back", START)
    site.boot(NEW)
    site.report(NEW, age=5)
    site.now = START + timedelta(seconds=4)
    assert isinstance(look(site, confirm, status), Again)
    site.now = START + timedelta(seconds=6)
    assert isinstance(look(site, confirm, status), Done)


# ---- all of them


@pytest.mark.parametrize("step", sorted(LOOK))
def test_an_api_server_that_is_away_is_unknown_to_every_step(site: Site, ours: str, step: str) -> None:
    repair = replace(site.repair(), status=tried())
    site.kube.pause()
    try:
        with pytest.raises(UnavailableError):
            LOOK[step](repair, site.clients())
    finally:
        site.kube.resume()


def test_every_step_is_asked_in_the_order_of_the_plan() -> None:
    assert all(set(steps) <= set(LOOK) for steps in STEPS.values())
