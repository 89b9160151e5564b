"""Clicks through the Bolt app: whose workspace they come from, and what they become."""

import asyncio
import json
from typing import Any

import pytest
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.incidents.incident import State
from bot.incidents.status import StatusReader
from bot.slack.inbound import SlackInbound
from bot.slack.outbound import SlackChat
from tests.bot.loop_harness import APPROVER, DETECTION, BotLoops
from tests.bot.samples import finding

OURS, THEIRS = "T0OURS", "T0THEIRS"


async def no_wait(_seconds: float) -> None:
    """Do not wait: nobody listens here."""


def click(bot: BotLoops, body: dict[str, Any]) -> int:
    """Have Slack deliver a click, let it be judged, and return the status of the acknowledgement."""
    metrics = bot.store.metrics
    chat = SlackChat.connect("http://127.0.0.1:9/", 1, lambda: "xoxb-example", bot.chat.channel, metrics)
    status = StatusReader(bot.store, bot.reports, DETECTION.report_interval)
    inbound = SlackInbound(chat, status, bot.lifecycle.decisions, metrics, no_wait)
    inbound.team = OURS

    async def deliver() -> int:
        request = AsyncBoltRequest(body=json.dumps(body), mode="socket_mode")
        answer = await inbound.app("").async_dispatch(request)
        await inbound.close()
        return answer.status

    return asyncio.run(deliver())


def approve(bot: BotLoops, team: str) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "team": {"id": team},
        "user": {"id": APPROVER},
        "channel": {"id": bot.chat.channel},
        "actions": [{"type": "button", "action_id": "approve", "block_id": "b", "value": bot.offered()}],
    }


def reject(bot: BotLoops, team: str) -> dict[str, Any]:
    return {
        "type": "view_submission",
        "team": {"id": team},
        "user": {"id": APPROVER},
        "view": {
            "type": "modal",
            "callback_id": "rejection",
            "private_metadata": bot.buttons()["reject"],
            "state": {"values": {"reason": {"reason": {"value": "not now"}}}},
        },
    }


@pytest.mark.parametrize("body", [approve, reject])
def test_a_click_of_our_workspace_decides(body: Any) -> None:
    bot = BotLoops()
    bot.report(finding())
    assert click(bot, body(bot, OURS)) == 200
    assert bot.incident.state is State.DECIDING


@pytest.mark.parametrize("body", [approve, reject])
def test_a_click_of_another_workspace_decides_nothing_and_is_counted(body: Any) -> None:
    bot = BotLoops()
    bot.report(finding())
    assert click(bot, body(bot, THEIRS)) == 200
    assert bot.incident.state is State.OPEN
    assert bot.metric("denied_clicks_total", reason="another-workspace") == 1
