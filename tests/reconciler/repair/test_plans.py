"""The plan in the record is what runs; a plan that this version does not know is held, never guessed."""

from typing import Any

import pytest

from checks.finding import Action
from reconciler.incidents.plan import Plan
from reconciler.incidents.progress import Phase
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.actions.registry import RefusedPlan, RunnablePlan, make_plan, resolve
from reconciler.repair.step import names
from tests.reconciler.harness import CLEAN, NodeHarness

PLAN = make_plan(REBOOT, "redfish", ())


def changed(**changes: Any) -> Plan:
    return PLAN.model_copy(update=changes)


def test_a_plan_that_this_version_made_runs_as_it_was_made() -> None:
    found = resolve(PLAN)
    assert isinstance(found, RunnablePlan)
    assert names(found.steps) == PLAN.steps


REFUSED: dict[str, tuple[Plan, Phase, str]] = {
    "an action of another version": (changed(action=Action.REPROVISION), Phase.HELD, "no action reprovision"),
    "a newer step list": (changed(version=2), Phase.HELD, "version 2 of the reboot plan"),
    "steps left out": (changed(steps=("reset",)), Phase.FAILED, "steps are not those of version 1"),
    "steps added": (changed(steps=(*PLAN.steps, "wipe")), Phase.FAILED, "steps are not those of version 1"),
    "a provider of another version": (changed(provider="ipmi"), Phase.HELD, "the provider 'ipmi'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_plan_that_is_not_known_is_not_run(name: str) -> None:
    plan, phase, reason = REFUSED[name]
    found = resolve(plan)
    assert isinstance(found, RefusedPlan)
    assert (found.phase, reason in found.reason) == (phase, True), found.reason


def test_a_repair_with_a_plan_of_a_newer_version_is_held_and_touches_nothing(
    harness: NodeHarness,
) -> None:
    newer = make_plan(REBOOT, "redfish", ()).model_copy(
        update={"version": 2, "steps": ("lock", "reboot-faster")}
    )
    record = harness.record()
    evidence = record.evidence.model_copy(update={"plan_digest": newer.digest})
    harness.order_record(record.model_copy(update={"plan": newer, "evidence": evidence}))

    repair = harness.run()

    assert (repair.status.phase, repair.status.held_by) == (Phase.HELD, "approver@example.com")
    assert "version 2 of the reboot plan" in repair.status.message
    assert harness.bmc.orders == []
    assert harness.marks() == CLEAN
    assert harness.outcome()["phase"] == "Held"


def test_an_upgrade_that_changes_the_steps_runs_a_repair_under_way_by_its_own_plan(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.order()
    harness.one_pass()
    longer = (*REBOOT.plans[1][:-1], REBOOT.plans[1][0], REBOOT.plans[1][-1])
    monkeypatch.setitem(dict_of(REBOOT.plans), 2, longer)

    repair = harness.run()

    assert repair.status.phase is Phase.SUCCEEDED
    assert [each.name for each in repair.status.steps] == list(PLAN.steps)


def dict_of(plans: Any) -> dict[int, Any]:
    assert isinstance(plans, dict)
    return plans
