"""The executor on the real control plane: what it relies on is what Kubernetes does."""

import pytest

from reconciler.incidents.progress import Phase
from tests.lab.kube.kube import Kube
from tests.reconciler.harness import CLEAN, NodeHarness
from tests.reconciler.outside import CrashPoint, Killed


@pytest.fixture(scope="session")
def kube(real: Kube) -> Kube:
    return real


def test_a_reboot_succeeds_and_leaves_nothing_behind(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    assert harness.run().status.phase is Phase.SUCCEEDED
    assert harness.bmc.resets == ["restart"]
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Succeeded"


def test_a_blocked_drain_names_its_budget_and_ends_held(harness: NodeHarness) -> None:
    labels = {"app": harness.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{harness.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    assert (
        harness.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)[0]
        == 201
    )
    harness.pod("web", labels=labels)
    harness.order("web")
    repair = harness.run()
    assert repair.status.phase is Phase.HELD
    assert (
        f"default/{harness.node}-web is blocked by PodDisruptionBudget {harness.node}-web"
        in repair.status.message
    )
    assert harness.marks() == CLEAN


def test_a_person_who_uncordons_cancels(harness: NodeHarness) -> None:
    harness.pod("train")
    harness.order("train")
    for _ in range(3):
        harness.one_pass()
    assert harness.marks()[0]
    harness.patch_node({"spec": {"unschedulable": None}})
    assert harness.run().status.phase is Phase.CANCELLED
    assert harness.marks() == CLEAN


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [8, 9])
def test_a_crash_leads_to_the_same_end_with_one_reset(harness: NodeHarness, number: int, after: bool) -> None:
    harness.pod("train")
    harness.order("train")
    with pytest.raises(Killed):
        harness.run(crash=CrashPoint(number, after=after))
    assert harness.run().status.phase is Phase.SUCCEEDED
    assert len(harness.bmc.resets) == 1
    assert harness.marks() == CLEAN
