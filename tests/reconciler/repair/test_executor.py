"""Invariant: whoever interrupts or interferes, a repair ends once, resets once, and leaves nothing behind."""

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from reconciler.incidents.progress import Phase
from reconciler.repair.providers.provider import Order, Power
from tests.reconciler.harness import CLEAN, FAULT, NEW, OLD, NodeHarness
from tests.reconciler.outside import CrashPoint, Killed

UNDISTURBED = 19
"""Changes of the outside in one undisturbed reboot with one pod, without the renewals of its lease."""

CHANGES = UNDISTURBED + 3
"""Changes to interrupt, a few renewals included; the first test below counts them."""


def test_a_reboot_goes_through_every_step_and_leaves_nothing_behind(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    crash = CrashPoint()

    repair = harness.run(crash=crash)

    assert (repair.status.phase, repair.status.message) == (Phase.SUCCEEDED, "the node is back in service")
    assert [each.name for each in repair.status.steps] == [
        "lock", "revalidate", "pre-state", "cordon", "drain", "recheck", "reset", "return", "verify",
        "uncordon",
    ]  # fmt: skip
    assert harness.bmc.resets == [Order.RESTART]
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Succeeded"
    assert harness.outcome()["newBootId"] == NEW
    assert repair.status.undo == ()
    assert "kept" not in harness.outcome() or harness.outcome()["kept"] == []
    assert crash.count - crash.renewals == UNDISTURBED


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_crash_at_any_change_leads_to_the_same_end_with_one_reset(
    harness: NodeHarness, number: int, after: bool
) -> None:
    harness.pod("train")
    harness.order("train")

    crash = CrashPoint(number, after=after)
    try:
        repair = harness.run(crash=crash)
    except Killed:
        repair = harness.run()
    else:
        # The machine was back too soon for that many renewals.
        assert UNDISTURBED <= crash.count < number

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(harness.bmc.resets) == 1
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Succeeded"


@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_rival_that_acts_at_any_moment_changes_nothing(harness: NodeHarness, number: int) -> None:
    harness.pod("train")
    harness.order("train")
    crash = CrashPoint()

    def rival(at: int) -> None:
        if at == number:
            harness.one_pass()

    crash.before_change = rival
    repair = harness.run(crash=crash)

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(harness.bmc.orders) == 1
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Succeeded"


@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_rival_that_runs_to_the_end_while_we_sleep_changes_nothing(
    harness: NodeHarness, number: int
) -> None:
    harness.pod("train")
    harness.order("train")
    crash = CrashPoint()

    def rival(at: int) -> None:
        if at == number:
            harness.run()

    crash.after_change = rival
    repair = harness.run(crash=crash)

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(harness.bmc.orders) == 1
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Succeeded"


@pytest.mark.parametrize("seconds", [5, 38, 45, 60, 80])
def test_a_machine_may_be_off_for_as_long_as_it_needs(harness: NodeHarness, seconds: int) -> None:
    """After 40 s the control plane says that the node is unreachable, and taints it."""
    harness.patch_node({"spec": {"taints": [{"key": "example.com/other", "effect": "NoSchedule"}]}})
    harness.bmc.off = timedelta(seconds=seconds)
    harness.order()
    unreachable: list[bool] = []
    while not harness.repair().status.phase.final:
        harness.pass_time(max(harness.one_pass().after or 0, 0.5))
        unreachable.append(harness.tainted)

    repair = harness.run()

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert any(unreachable) == (seconds > 40)
    assert harness.bmc.orders == [Order.RESTART]
    assert harness.marks() == (False, ["example.com/other"], "")


def lapse(harness: NodeHarness) -> None:
    harness.report(OLD)


def cancel(harness: NodeHarness) -> None:
    harness.patch_node({"spec": {"unschedulable": None}})


def block(harness: NodeHarness) -> None:
    labels = {"app": harness.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{harness.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    harness.pod("web", labels=labels)
    assert (
        harness.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)[0]
        == 201
    )


def no_bmc_configured(harness: NodeHarness) -> None:
    harness.patch_node({"metadata": {"labels": {"pool": "other"}}})


def never_boots(harness: NodeHarness) -> None:
    harness.bmc.obey = lambda _kind: setattr(harness.bmc, "power", Power.OFF)


def boots_without_gpu(harness: NodeHarness) -> None:
    harness.bmc.obey = lambda _kind: harness.boot(NEW, gpus=7)


def ignores_orders(harness: NodeHarness) -> None:
    harness.bmc.ignores = 9


ENDINGS: dict[str, tuple[Callable[[NodeHarness], None], Phase, str, int]] = {
    "findings gone": (lapse, Phase.LAPSED, "the findings are not those approved", 0),
    "no BMC": (no_bmc_configured, Phase.FAILED, "the configuration names no redfish machine", 0),
    "blocked": (block, Phase.HELD, "-web", 0),
    "never boots": (never_boots, Phase.HELD, "cannot tell whether the restart was carried out", 1),
    "not whole": (boots_without_gpu, Phase.HELD, "the node offers 7 of 8 GPUs", 1),
    "no effect": (ignores_orders, Phase.FAILED, "2 orders to restart the machine had no effect", 0),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_gives_back_what_it_holds_and_is_recorded(harness: NodeHarness, name: str) -> None:
    disturb, phase, reason, resets = ENDINGS[name]
    if name == "blocked":
        disturb(harness)
        harness.order("web")
    else:
        harness.order("web")
        disturb(harness)

    repair = harness.run()

    assert (repair.status.phase, reason in repair.status.message) == (phase, True), repair.status.message
    assert len(harness.bmc.resets) == resets
    cordoned, taints, holder = harness.marks()
    assert holder == ""
    kept = resets > 0
    assert (cordoned, taints) == (kept, ["clusterwright.dev/repair"] if kept else [])
    assert harness.outcome()["phase"] == phase.value
    assert harness.outcome().get("kept", []) == (["cordon"] if kept else [])
    assert (harness.outcome()["heldBy"] == "approver@example.com") == (phase is Phase.HELD)


def test_a_failed_verification_keeps_the_node_out_of_service(harness: NodeHarness) -> None:
    harness.order()
    harness.bmc.obey = lambda _kind: (harness.boot(NEW), harness.bot.reports.pop(harness.node))[0]

    repair = harness.run()

    assert (repair.status.phase, repair.status.message) == (
        Phase.FAILED, "verifying took longer than 1 min: no report from the new boot",
    )  # fmt: skip
    assert harness.marks() == (True, ["clusterwright.dev/repair"], "")


def test_a_person_who_uncordons_cancels_and_finds_no_mark_of_ours(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    for _ in range(4):
        harness.one_pass()
    assert harness.marks()[0]

    cancel(harness)
    repair = harness.run()

    assert (repair.status.phase, repair.status.message) == (
        Phase.CANCELLED, "somebody made the node schedulable again",
    )  # fmt: skip
    assert harness.bmc.orders == []
    assert harness.marks() == CLEAN
    assert (
        "annotations" not in harness.raw_node()["metadata"]
        or not harness.raw_node()["metadata"]["annotations"]
    )


def test_a_node_that_somebody_else_cordoned_stays_cordoned(harness: NodeHarness) -> None:
    harness.patch_node({"spec": {"unschedulable": True}})
    harness.order()

    assert harness.run().status.phase is Phase.SUCCEEDED
    assert harness.marks() == (True, [], "")


def test_a_node_that_somebody_cordoned_again_during_the_repair_stays_cordoned(harness: NodeHarness) -> None:
    harness.order()
    harness.bmc.obey = lambda _kind: (
        harness.patch_node({"spec": {"unschedulable": None}}),
        harness.patch_node({"spec": {"unschedulable": True}}),
        harness.boot(NEW),
    )[0]

    assert harness.run().status.phase is Phase.SUCCEEDED
    assert harness.marks() == (True, [], "")


def test_nothing_of_a_record_that_git_does_not_hold_is_carried_out_or_recorded(harness: NodeHarness) -> None:
    harness.order()
    harness.files.clear()

    repair = harness.run()

    assert (repair.status.phase, repair.status.message) == (Phase.FAILED, "Git holds no such repair record")
    assert harness.bmc.orders == []
    assert harness.incident_branch.events == []


def test_git_that_cannot_be_read_holds_a_repair_without_losing_it(harness: NodeHarness) -> None:
    harness.order()
    harness.git_valid = timedelta(0)
    repair = harness.run(seconds=600)
    assert (repair.status.phase, repair.status.message) == (Phase.RUNNING, "Git cannot be read")
    assert not harness.marks()[0]

    harness.git_valid = timedelta(days=1)
    assert harness.run().status.phase is Phase.SUCCEEDED


def test_an_outcome_waits_for_a_git_host_that_is_down(harness: NodeHarness) -> None:
    harness.order()
    harness.incident_branch.down = True
    with pytest.raises(Exception, match="the Git host is down"):
        harness.run()
    assert harness.marks() == CLEAN

    harness.incident_branch.down = False
    assert harness.run().status.phase is Phase.SUCCEEDED
    assert harness.outcome()["phase"] == "Succeeded"


def test_a_pass_over_a_repair_that_is_over_changes_nothing(harness: NodeHarness) -> None:
    harness.order()
    before = harness.run()

    crash = CrashPoint()
    assert harness.one_pass(crash).after is None
    assert crash.count == 0
    assert harness.repair() == before


def test_findings_that_change_their_count_do_not_void_an_approval(harness: NodeHarness) -> None:
    harness.order()
    harness.report(OLD, msgspec.structs.replace(FAULT, count=1000))
    assert harness.run().status.phase is Phase.SUCCEEDED
