"""The real Slack client libraries find in the emulator what they expect of Slack."""

import pytest
from slack_sdk.errors import SlackApiError

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.boltapp import BoltApp
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL

BUTTONS = [
    {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": name,
                "value": f"{name}-1",
                "text": {"type": "plain_text", "text": name.title()},
            }
            for name in ("approve", "reject")
        ],
    }
]


def post(slack: Slack, bolt: BoltApp) -> str:
    answer = bolt.run(bolt.client.chat_postMessage(channel=CHANNEL, text="decide", blocks=BUTTONS))
    return str(answer["ts"])


def test_a_click_reaches_the_app_and_its_update_replaces_the_message(slack: Slack, bolt: BoltApp) -> None:
    ts = post(slack, bolt)
    delivery = slack.click(CHANNEL, ts, "approve", APPROVER)
    assert delivery.acked
    assert delivery.seconds is not None
    assert delivery.seconds < 3
    message = slack.wait_for(lambda: [m for m in slack.messages(CHANNEL) if "edited" in m])[0]
    assert message["text"] == f"approved by {APPROVER}: approve-1"
    assert "blocks" not in message
    assert slack.versions(CHANNEL, ts)[0].text == "decide"


def test_a_click_on_an_old_version_carries_the_old_value(slack: Slack, bolt: BoltApp) -> None:
    ts = post(slack, bolt)
    slack.click(CHANNEL, ts, "approve", APPROVER)
    slack.wait_for(lambda: len(slack.versions(CHANNEL, ts)) == 2)
    with pytest.raises(LookupError, match="no element with action_id 'approve'"):
        slack.click(CHANNEL, ts, "approve", APPROVER)
    assert slack.click(CHANNEL, ts, "approve", APPROVER, version=0).acked
    assert bolt.seen[-1]["message"]["text"] == "decide"


def test_a_modal_shows_the_errors_of_the_app_and_closes_when_it_is_content(
    slack: Slack, bolt: BoltApp
) -> None:
    ts = post(slack, bolt)
    assert slack.click(CHANNEL, ts, "reject", APPROVER).acked
    view = slack.wait_for(lambda: slack.views(APPROVER))[0]
    assert view["callback_id"] == "reason"
    assert slack.submit(APPROVER, {}).errors == {"why": "Please complete this required field."}
    assert slack.submit(APPROVER, {"why": "no"}).errors == {"why": "Say a little more."}
    assert slack.submit(APPROVER, {"why": "the job ends at noon"}).acked
    assert slack.views(APPROVER) == []


def test_a_slash_command_is_answered_only_to_the_one_who_typed_it(slack: Slack, bolt: BoltApp) -> None:
    assert slack.slash(APPROVER, CHANNEL, "status").acked
    slack.wait_for(lambda: len(slack.ephemerals(APPROVER)) == 2)
    texts = {message["text"] for message in slack.ephemerals(APPROVER)}
    assert texts == {"you said status", "and one more"}
    assert slack.messages(CHANNEL) == []


def test_opening_the_home_makes_the_app_publish_one(slack: Slack, bolt: BoltApp) -> None:
    assert slack.open_home(APPROVER).acked
    home = slack.wait_for(lambda: slack.home(APPROVER))
    assert home is not None
    assert home["type"] == "home"


def test_an_app_that_is_too_slow_has_not_acknowledged(slack: Slack, bolt: BoltApp) -> None:
    ts = post(slack, bolt)
    bolt.ack_late_seconds = 3.3
    delivery = slack.click(CHANNEL, ts, "approve", APPROVER)
    assert not delivery.acked
    assert delivery.why == "no ack within 3 s"
    assert delivery.attempts == 1


def test_an_api_error_reaches_the_client_as_one(slack: Slack, bolt: BoltApp) -> None:
    with pytest.raises(SlackApiError) as caught:
        bolt.run(bolt.client.chat_postMessage(channel="C0NOTHERE", text="hello"))
    assert caught.value.response["error"] == "channel_not_found"
