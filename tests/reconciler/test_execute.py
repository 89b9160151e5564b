"""Invariant: whoever interrupts or interferes, a repair ends once, resets once, and leaves nothing behind."""

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from reconciler.incidents.progress import Phase
from reconciler.repair.executor import LOOK
from reconciler.repair.steps import STEPS
from tests.reconciler.site import CLEAN, FAULT, NEW, OLD, Fuse, Killed, Site

CHANGES = 19
"""Changes of the outside in one undisturbed reboot with one pod; the first test below counts them."""


def test_every_step_of_every_plan_can_be_looked_at() -> None:
    assert {step for every in STEPS.values() for step in every} == set(LOOK)


def test_a_reboot_goes_through_every_step_and_leaves_nothing_behind(site: Site) -> None:
    site.pod("train")
    site.order("train")
    fuse = Fuse()

    repair = site.run(fuse=fuse)

    assert (repair.status.phase, repair.status.message) == (Phase.SUCCEEDED, "the node is back in service")
    assert [each.name for each in repair.status.steps] == [
        "lock", "revalidate", "pre-state", "cordon", "drain", "recheck", "reset", "return", "verify",
        "uncordon", "release", "record",
    ]  # fmt: skip
    assert site.bmc.resets == ["GracefulRestart"]
    assert site.marks() == CLEAN
    assert site.outcome()["phase"] == "Succeeded"
    assert site.outcome()["newBootId"] == NEW
    assert fuse.count == CHANGES


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_crash_at_any_change_leads_to_the_same_end_with_one_reset(
    site: Site, number: int, after: bool
) -> None:
    site.pod("train")
    site.order("train")

    with pytest.raises(Killed):
        site.run(fuse=Fuse(number, after=after))
    repair = site.run()

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(site.bmc.resets) == 1
    assert site.marks() == CLEAN
    assert site.outcome()["phase"] == "Succeeded"


@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_rival_that_acts_at_any_moment_changes_nothing(site: Site, number: int) -> None:
    site.pod("train")
    site.order("train")
    fuse = Fuse()

    def rival(at: int) -> None:
        if at == number:
            site.one_pass()

    fuse.before_change = rival
    repair = site.run(fuse=fuse)

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(site.bmc.orders) == 1
    assert site.marks() == CLEAN
    assert site.outcome()["phase"] == "Succeeded"


@pytest.mark.parametrize("number", range(1, CHANGES + 1))
def test_a_rival_that_runs_to_the_end_while_we_sleep_changes_nothing(site: Site, number: int) -> None:
    site.pod("train")
    site.order("train")
    fuse = Fuse()

    def rival(at: int) -> None:
        if at == number:
            site.run()

    fuse.after_change = rival
    repair = site.run(fuse=fuse)

    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert len(site.bmc.orders) == 1
    assert site.marks() == CLEAN
    assert site.outcome()["phase"] == "Succeeded"


def lapse(site: Site) -> None:
    site.report(OLD)


def cancel(site: Site) -> None:
    site.patch_node({"spec": {"unschedulable": None}})


def block(site: Site) -> None:
    labels = {"app": site.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{site.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    site.pod("web", labels=labels)
    assert (
        site.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)[0] == 201
    )


def no_bmc_configured(site: Site) -> None:
    site.patch_node({"metadata": {"labels": {"pool": "other"}}})


def never_boots(site: Site) -> None:
    site.bmc.obey = lambda _kind: setattr(site.bmc, "power", "Off")


def boots_without_gpu(site: Site) -> None:
    site.bmc.obey = lambda _kind: site.boot(NEW, gpus=7)


def ignores_orders(site: Site) -> None:
    site.bmc.ignores = 9


ENDINGS: dict[str, tuple[Callable[[Site], None], Phase, str, int]] = {
    "findings gone": (lapse, Phase.LAPSED, "the findings are not those approved", 0),
    "no BMC": (no_bmc_configured, Phase.FAILED, "the configuration names no BMC", 0),
    "blocked": (block, Phase.HELD, "-web", 0),
    "never boots": (never_boots, Phase.HELD, "cannot tell whether GracefulRestart was carried out", 1),
    "not whole": (boots_without_gpu, Phase.HELD, "the node offers 7 of 8 GPUs", 1),
    "no effect": (ignores_orders, Phase.FAILED, "2 resets had no effect", 0),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_gives_back_what_it_holds_and_is_recorded(site: Site, name: str) -> None:
    disturb, phase, reason, resets = ENDINGS[name]
    site.order("web")
    disturb(site)

    repair = site.run()

    assert (repair.status.phase, reason in repair.status.message) == (phase, True), repair.status.message
    assert len(site.bmc.resets) == resets
    cordoned, taints, holder = site.marks()
    assert holder == ""
    kept = resets > 0
    assert (cordoned, taints) == (kept, ["clusterwright.dev/repair"] if kept else [])
    assert site.outcome()["phase"] == phase.value
    assert (site.outcome()["heldBy"] == "approver@example.com") == (phase is Phase.HELD)


def test_a_failed_verification_keeps_the_node_out_of_service(site: Site) -> None:
    site.order()
    site.bmc.obey = lambda _kind: (site.boot(NEW), site.bot.reports.pop(site.node))[0]

    repair = site.run()

    assert (repair.status.phase, repair.status.message) == (
        Phase.FAILED, "verification failed: no report from the new boot",
    )  # fmt: skip
    assert site.marks() == (True, ["clusterwright.dev/repair"], "")


def test_a_person_who_uncordons_cancels_and_finds_no_mark_of_ours(site: Site) -> None:
    site.pod("train")
    site.order("train")
    for _ in range(4):
        site.one_pass()
    assert site.marks()[0]

    cancel(site)
    repair = site.run()

    assert (repair.status.phase, repair.status.message) == (
        Phase.CANCELLED, "somebody made the node schedulable again",
    )  # fmt: skip
    assert site.bmc.orders == []
    assert site.marks() == CLEAN
    assert "annotations" not in site.raw_node()["metadata"] or not site.raw_node()["metadata"]["annotations"]


def test_a_node_that_somebody_else_cordoned_stays_cordoned(site: Site) -> None:
    site.patch_node({"spec": {"unschedulable": True}})
    site.order()

    assert site.run().status.phase is Phase.SUCCEEDED
    assert site.marks() == (True, [], "")


def test_a_node_that_somebody_cordoned_again_during_the_repair_stays_cordoned(site: Site) -> None:
    site.order()
    site.bmc.obey = lambda _kind: (
        site.patch_node({"spec": {"unschedulable": None}}),
        site.patch_node({"spec": {"unschedulable": True}}),
        site.boot(NEW),
    )[0]

    assert site.run().status.phase is Phase.SUCCEEDED
    assert site.marks() == (True, [], "")


def test_nothing_of_a_record_that_git_does_not_hold_is_carried_out_or_recorded(site: Site) -> None:
    site.order()
    site.files.clear()

    repair = site.run()

    assert (repair.status.phase, repair.status.message) == (Phase.FAILED, "Git holds no such repair record")
    assert site.bmc.orders == []
    assert site.notebook.events == []


def test_git_that_cannot_be_read_holds_a_repair_without_losing_it(site: Site) -> None:
    site.order()
    site.git_valid = timedelta(0)
    repair = site.run(seconds=600)
    assert (repair.status.phase, repair.status.message) == (Phase.RUNNING, "waits: Git cannot be read")
    assert not site.marks()[0]

    site.git_valid = timedelta(days=1)
    assert site.run().status.phase is Phase.SUCCEEDED


def test_an_outcome_waits_for_a_git_host_that_is_down(site: Site) -> None:
    site.order()
    site.notebook.down = True
    with pytest.raises(Exception, match="the Git host is down"):
        site.run()
    assert site.marks() == CLEAN

    site.notebook.down = False
    assert site.run().status.phase is Phase.SUCCEEDED
    assert site.outcome()["phase"] == "Succeeded"


def test_a_pass_over_a_repair_that_is_over_changes_nothing(site: Site) -> None:
    site.order()
    before = site.run()

    fuse = Fuse()
    assert site.one_pass(fuse).after is None
    assert fuse.count == 0
    assert site.repair() == before


def test_findings_that_change_their_count_do_not_void_an_approval(site: Site) -> None:
    site.order()
    site.report(OLD, msgspec.structs.replace(FAULT, count=1000))
    assert site.run().status.phase is Phase.SUCCEEDED
