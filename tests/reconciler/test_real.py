"""The executor on the real control plane: what it relies on is what Kubernetes does."""

import pytest

from reconciler.incidents.progress import Phase
from tests.lab.kube.kube import Kube
from tests.reconciler.site import CLEAN, Fuse, Killed, Site


@pytest.fixture(scope="session")
def kube(real: Kube) -> Kube:
    return real


def test_a_reboot_succeeds_and_leaves_nothing_behind(site: Site) -> None:
    site.pod("train")
    site.order("train")
    assert site.run().status.phase is Phase.SUCCEEDED
    assert site.bmc.resets == ["GracefulRestart"]
    assert site.marks() == CLEAN
    assert site.outcome()["phase"] == "Succeeded"


def test_a_blocked_drain_names_its_budget_and_ends_held(site: Site) -> None:
    labels = {"app": site.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{site.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    assert (
        site.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)[0] == 201
    )
    site.pod("web", labels=labels)
    site.order("web")
    repair = site.run()
    assert repair.status.phase is Phase.HELD
    assert (
        f"default/{site.node}-web is blocked by PodDisruptionBudget {site.node}-web" in repair.status.message
    )
    assert site.marks() == CLEAN


def test_a_person_who_uncordons_cancels(site: Site) -> None:
    site.pod("train")
    site.order("train")
    for _ in range(3):
        site.one_pass()
    assert site.marks()[0]
    site.patch_node({"spec": {"unschedulable": None}})
    assert site.run().status.phase is Phase.CANCELLED
    assert site.marks() == CLEAN


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [8, 9])
def test_a_crash_leads_to_the_same_end_with_one_reset(site: Site, number: int, after: bool) -> None:
    site.pod("train")
    site.order("train")
    with pytest.raises(Killed):
        site.run(fuse=Fuse(number, after=after))
    assert site.run().status.phase is Phase.SUCCEEDED
    assert len(site.bmc.resets) == 1
    assert site.marks() == CLEAN
