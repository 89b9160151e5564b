"""Offers follow the pods, repairs are followed to their end."""

from datetime import timedelta

import pytest

from bot.incidents.incident import IncidentEvent, State
from reconciler.incidents.progress import BlockedPod, DrainFact, Phase, StepState
from reconciler.kube.objects import Budget
from reconciler.repair.resource import PreState
from tests.bot.loop_harness import BotLoops, running_pod
from tests.bot.samples import BOOT, NEW_BOOT, decision, finding, progress


def shown(bot: BotLoops) -> str:
    return str(bot.root.message.blocks)


def test_the_root_names_the_pods_that_a_repair_stops_and_follows_them(asked: BotLoops) -> None:
    assert "stops 1 pod holding 8 GPUs" in shown(asked)
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0", gpus=2),)
    asked.wait(seconds=10)
    assert "stops 2 pods holding 10 GPUs" in shown(asked)


def test_a_pod_that_a_budget_protects_is_named_with_its_budget(bot: BotLoops) -> None:
    bot.cluster.all_budgets = (Budget("train", "quorum", {}, 0),)
    bot.report(finding())
    assert "PodDisruptionBudget quorum allows no eviction now" in shown(bot)


def test_an_offer_for_an_older_revision_is_not_made(asked: BotLoops) -> None:
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0"),)
    asked.now += timedelta(seconds=10)

    def somebody_decides() -> None:
        asked.store.transition(asked.open_incident, IncidentEvent.DECIDED, decision=decision())

    asked.cluster.while_listing_pods = somebody_decides
    asked.run_task("offers")
    assert asked.incident.state is State.DECIDING
    assert asked.incident.offer is not None
    assert len(asked.incident.offer.plan.disturbs) == 1


def test_while_kubernetes_is_down_the_offer_stays_and_a_new_incident_says_why_there_is_none(
    bot: BotLoops,
) -> None:
    bot.settle()
    bot.cluster.down = True
    bot.report(finding())
    assert "it is not known which pods a repair would stop" in shown(bot)
    assert bot.buttons() == {}
    bot.cluster.down = False
    bot.wait(seconds=10)
    assert set(bot.buttons()) == {"approve", "reject"}
    bot.cluster.down = True
    bot.wait(seconds=10)
    assert set(bot.buttons()) == {"approve", "reject"}


def test_a_repair_is_followed_and_its_outcome_closes_the_incident(asked: BotLoops) -> None:
    asked.click("approve")
    blocked = DrainFact(
        pods_left=1, blocked=(BlockedPod(namespace="train", name="worker-0", budgets=("quorum",)),)
    )
    asked.progress(progress("drain", "1 pod left", blocked))
    assert asked.incident.state is State.REPAIRING
    assert "*draining*" in shown(asked)
    assert "PodDisruptionBudget quorum" in asked.replies[-1]
    asked.reboot()
    asked.report(boot_id=NEW_BOOT)
    asked.finish(Phase.SUCCEEDED)
    assert "closed.yaml" in asked.files()
    assert asked.store.by_id == {}
    assert "Repaired" in asked.root.message.text
    assert asked.replies[-1].startswith("Closed at")
    assert len([text for text in asked.replies if "<@" in text]) == 1


def test_a_failed_repair_is_offered_again_as_the_next_attempt(asked: BotLoops) -> None:
    asked.click("approve")
    asked.finish(Phase.FAILED, kept=("cordon",))
    asked.wait(seconds=3)
    assert "The repair failed" in shown(asked)
    assert "The repair left the node cordoned" in shown(asked)
    assert "Waiting for a decision" in shown(asked)
    asked.click("approve")
    (_, first), (_, second) = asked.record(1), asked.record(2)
    assert (second.attempt, second.approvals) == (2, ("approval-2.yaml",))
    assert second.action_id != first.action_id


@pytest.mark.parametrize(
    ("state", "boots"),
    [(StepState.DONE, {BOOT}), (StepState.INTENT, {BOOT}), (StepState.NOT_DONE, set())],
)
def test_a_bot_that_starts_knows_the_boots_that_repairs_ended(
    asked: BotLoops, state: StepState, boots: set[str]
) -> None:
    asked.click("approve")
    entry = progress("reset").steps[-1].model_copy(update={"state": state})
    status = progress("reset").model_copy(update={"steps": (entry,), "pre_state": _before()})
    asked.progress(status)
    asked.restart()
    asked.settle()
    assert asked.store.reset_boots is not None
    assert asked.store.reset_boots.get("gpu-01", frozenset()) == boots


def _before() -> PreState:
    return PreState(boot_id=BOOT, power="on", unschedulable=False)
