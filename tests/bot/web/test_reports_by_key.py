"""Reports that name what has not changed, through the bot's real endpoint."""

from typing import Any

import httpx
import msgspec

from checks.report import AUDIENCE, NodeReport
from checks.report_delta import make_delta
from tests.bot.agent import Agent, reboot_required
from tests.bot.harness import BotProcess


def post(bot: BotProcess, agent: Agent, report: NodeReport, taken: NodeReport | None) -> httpx.Response:
    body = msgspec.json.encode(make_delta(report, taken))
    return bot.http.post("/v1/reports", content=body, headers={"Authorization": f"Bearer {agent.token}"})


def held(bot: BotProcess, node: str) -> dict[str, Any]:
    token = bot.kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,))
    answer = bot.http.get(f"/v1/nodes/{node}/report", headers={"Authorization": f"Bearer {token}"})
    report: dict[str, Any] = answer.json()["report"]
    return report


def test_a_report_by_key_is_held_whole(bot: BotProcess) -> None:
    agent = bot.agent("gpu-171")
    first, second = agent.report(reboot_required()), agent.report(reboot_required())
    answer = post(bot, agent, first, None)
    assert (answer.status_code, answer.json()["holds"]) == (202, True)
    assert post(bot, agent, second, first).status_code == 202
    report = held(bot, "gpu-171")
    assert (report["sequence"], [each["code"] for each in report["findings"]]) == (2, ["154"])
    assert report["inventory"] == {"gpus": []}
    assert len(bot.roots("gpu-171")) <= 1
    bot.root("gpu-171")


def test_a_bot_that_was_started_anew_asks_for_the_whole_state(start_bot: Any) -> None:
    bot: BotProcess = start_bot()
    agent = bot.agent("gpu-172")
    first, second, third = (agent.report(reboot_required()) for _ in range(3))
    assert post(bot, agent, first, None).status_code == 202
    bot.restart()
    answer = post(bot, agent, second, first)
    assert (answer.status_code, answer.json()["resend"]) == (409, True)
    assert "request_refused" not in bot.log()
    assert post(bot, agent, third, None).status_code == 202
    assert [each["code"] for each in held(bot, "gpu-172")["findings"]] == ["154"]


def test_an_agent_that_lost_its_number_is_told_where_to_go_on(bot: BotProcess) -> None:
    agent = bot.agent("gpu-173")
    assert post(bot, agent, agent.report(sequence=41), None).status_code == 202
    answer = post(bot, agent, agent.report(sequence=1), None)
    assert (answer.status_code, answer.json()["held"]) == (409, 41)
