"""What the bot's answer tells an agent: its pool, and which boots of its node our repairs ended."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.incidents.progress import JournalEntry, Phase, StepState
from reconciler.repair.resource import PreState, RepairStatus
from tests.bot.agent import BOOT, NEXT_BOOT
from tests.bot.harness import BotProcess
from tests.lab.kube.kube import Kube

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
REPAIRS = "/apis/clusterwright.dev/v1alpha1/repairs"


def answer(bot: BotProcess, node: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Report until the answer is as wanted: the bot reads nodes, Git and repairs by and by."""

    def ask() -> dict[str, Any]:
        response = bot.post(bot.agents[node])
        assert response.status_code == 202, response.text
        return response.json() if wanted(response.json()) else {}

    return bot.wait("the answer", ask)


def put_repair(kube: Kube, node: str, *steps: tuple[str, StepState]) -> None:
    """A repair of the node that ended, with this journal."""
    name = f"{node}-{'-'.join(each for each, _ in steps)}"
    evidence = {"node": node}
    body = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Repair", "metadata": {"name": name},
        "spec": {"recordPath": "x", "recordCommit": "x", "record": {"evidence": evidence}},
    }  # fmt: skip
    code, made = kube.request("POST", REPAIRS, body)
    assert code == 201, made
    status = RepairStatus(
        phase=Phase.SUCCEEDED,
        steps=tuple(
            JournalEntry(name=each, state=state, started_at=NOW, destructive=each == "reset")
            for each, state in steps
        ),
        pre_state=PreState(boot_id=BOOT, power="On", unschedulable=False),
    )
    patch = {"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)}
    code, made = kube.request("PATCH", f"{REPAIRS}/{name}/status", patch, "application/merge-patch+json")
    assert code == 200, made


def test_an_agent_learns_its_pool(bot: BotProcess) -> None:
    bot.agent("gpu-401")
    assert answer(bot, "gpu-401", lambda told: "pool" in told)["pool"] == "h100"


@pytest.mark.parametrize(
    ("node", "journal", "boots"),
    [
        ("gpu-402", [("drain", StepState.DONE), ("reset", StepState.DONE)], [BOOT]),
        ("gpu-405", [("drain", StepState.DONE)], []),
    ],
)
def test_a_bot_that_has_just_started_knows_the_boots_that_repairs_ended(
    cluster_api: Kube,
    start_bot: Callable[..., BotProcess],
    node: str,
    journal: list[tuple[str, StepState]],
    boots: list[str],
) -> None:
    put_repair(cluster_api, node, *journal)
    bot = start_bot()
    bot.agent(node).boot(NEXT_BOOT)
    assert answer(bot, node, lambda told: "reset_boots" in told)["reset_boots"] == boots
