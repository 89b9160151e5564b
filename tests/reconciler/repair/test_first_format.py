"""An upgrade goes on with the journals and the plans that the first published form wrote."""

from typing import Any

import pytest
import yaml

from reconciler.incidents.digests import digest
from reconciler.incidents.plan import Plan
from reconciler.incidents.progress import Phase
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.actions.registry import make_plan
from reconciler.repair.first_format import upgraded
from reconciler.repair.resource import RepairStatus
from reconciler.repair.step import names
from tests.reconciler.harness import CLEAN, MERGE, NodeHarness

FIRST_PLAN = """
action: reboot
provider: redfish
steps: [lock, revalidate, pre-state, cordon, drain, recheck, reset, return, verify, uncordon]
disturbs:
- {namespace: default, name: train-0, controller: Job/train, gpus: 8, risks: [emptyDir]}
keepsLocalData: true
"""


FIELDS = ("name", "state", "startedAt", "finishedAt", "message")


def first_form(status: RepairStatus) -> dict[str, Any]:
    """Return a status as the first form wrote it."""
    plain = status.model_dump(mode="json", by_alias=True)
    for key in ("undo", "released", "recorded"):
        plain[key] = None
    plain["steps"] = [
        {
            "seen": each["heartbeat"],
            **{key: each[key] for key in FIELDS},
        }
        for each in plain["steps"]
        if each["state"] != "waiting"
    ]
    if plain["preState"]:
        plain["preState"]["system"] = plain["preState"].pop("machine")
    return plain


def rewrite(harness: NodeHarness) -> None:
    """Replace the status by the same one in the first form."""
    repair = harness.repair()
    path = f"/apis/clusterwright.dev/v1alpha1/repairs/{repair.name}/status"
    body = {"status": first_form(repair.status)}
    assert harness.kube.request("PATCH", path, body, MERGE)[0] == 200


@pytest.mark.parametrize("step", names(REBOOT.plans[1]))
def test_an_upgrade_at_any_step_strands_no_node(harness: NodeHarness, step: str) -> None:
    harness.pod("train")
    harness.order("train")
    for _ in range(400):
        if any(each.name == step for each in harness.repair().status.steps):
            break
        harness.pass_time(harness.one_pass().after or 0)
    rewrite(harness)

    repair = harness.run()

    assert len(harness.bmc.orders) <= 1
    cordoned, taints, holder = harness.marks()
    assert holder == ""
    if repair.status.phase is Phase.SUCCEEDED:
        assert (cordoned, taints) == (False, [])
    else:
        # Which order was given is not in that form, so a person has to take over a node that may restart.
        assert repair.status.phase is Phase.HELD, repair.status.message
        assert step in ("recheck", "reset"), "the recheck is noted with the intent of the reset"
        assert harness.outcome()["kept"] == (["cordon"] if cordoned else [])


def test_an_ended_repair_of_the_first_form_stays_ended(harness: NodeHarness) -> None:
    harness.order()
    status = harness.run().status
    assert harness.marks() == CLEAN
    plain = first_form(status)
    done = {"state": "done", "startedAt": plain["finishedAt"], "message": "in Git"}
    ended = [{"name": name, **done} for name in ("release", "record")]
    found = RepairStatus.model_validate({**plain, "steps": [*plain["steps"], *ended]})
    assert (found.released, found.recorded, found.undo) == (True, "in Git", ())
    assert [each.name for each in found.steps] == [each.name for each in status.steps]


def test_a_plan_of_the_first_form_keeps_the_digest_that_was_approved() -> None:
    plan = Plan.model_validate(yaml.safe_load(FIRST_PLAN))
    first = {
        "action": "reboot", "provider": "redfish", "steps": list(names(REBOOT.plans[1])), "keepsLocalData": True,
        "disturbs": [
            {"namespace": "default", "name": "train-0", "controller": "Job/train", "gpus": 8, "risks": ["emptyDir"]}
        ],
    }  # fmt: skip
    assert plan.digest == digest(first)


def test_what_is_set_counts_in_the_digest() -> None:
    plan = make_plan(REBOOT, "redfish", ())
    assert plan.digest != plan.model_copy(update={"version": 2}).digest


@pytest.mark.parametrize("status", [None, "x", {}, {"steps": None}, {"steps": ["x"]}, {"steps": []}])
def test_what_is_no_journal_of_the_first_form_is_left_as_it_is(status: Any) -> None:
    assert upgraded(status) is status
