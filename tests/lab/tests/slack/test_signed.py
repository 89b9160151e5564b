"""HTTP mode: a real Bolt app takes what is signed well and refuses every forgery."""

import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.slack.signed import Tamper
from tests.lab.tests.slack.boltapp import BoltApp
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL
from tests.lab.tests.slack.plainclient import call

BUTTON = {
    "type": "button",
    "action_id": "approve",
    "text": {"type": "plain_text", "text": "Go"},
    "value": "ü+ &",
}


def post(slack: Slack) -> str:
    blocks = [{"type": "actions", "elements": [BUTTON]}]
    return str(call(slack, "chat.postMessage", channel=CHANNEL, text="decide", blocks=blocks)["ts"])


def test_clicks_commands_and_events_arrive_signed(slack: Slack, http_bolt: BoltApp) -> None:
    click = slack.click(CHANNEL, post(slack), "approve", APPROVER)
    assert click.acked
    assert http_bolt.seen[-1]["actions"][0]["value"] == "ü+ &"
    assert slack.slash(APPROVER, CHANNEL, "status — now").response == {"text": "you said status — now"}
    assert slack.open_home(APPROVER).acked


@pytest.mark.parametrize("tamper", ["wrong_secret", "old_timestamp", "reencoded_body", "unsigned"])
def test_a_forged_request_is_refused(slack: Slack, http_bolt: BoltApp, tamper: Tamper) -> None:
    ts = post(slack)
    slack.http.tamper = tamper
    delivery = slack.click(CHANNEL, ts, "approve", APPROVER)
    assert (delivery.acked, delivery.status) == (False, 401)
    assert http_bolt.seen == []
    slack.http.tamper = None
    assert slack.click(CHANNEL, ts, "approve", APPROVER).acked


def test_a_click_beside_an_unsigned_certificate_check_is_refused(slack: Slack, http_bolt: BoltApp) -> None:
    ts = post(slack)
    slack.http.tamper = "unsigned"
    stolen = slack.click(CHANNEL, ts, "approve", APPROVER).payload
    assert slack.ssl_check().status == 401
    assert slack.ssl_check(stolen).status == 401
    assert http_bolt.seen == []


def test_the_challenge_of_the_request_url_comes_back(slack: Slack, http_bolt: BoltApp) -> None:
    assert "challenge-of-the-lab" in slack.url_verification().text


def test_an_event_that_is_refused_comes_again_with_retry_headers(slack: Slack, http_bolt: BoltApp) -> None:
    slack.outbox.retry_seconds = (0.0, 0.05, 0.05)
    slack.http.tamper = "wrong_secret"
    delivery = slack.open_home(APPROVER)
    slack.wait_for(lambda: delivery.attempts == 4)
    assert not delivery.acked
    assert delivery.retry_attempts == [0, 1, 2, 3]


def test_a_click_that_nobody_takes_is_not_sent_again(slack: Slack) -> None:
    slack.http.request_url = "http://127.0.0.1:9/"
    delivery = slack.click(CHANNEL, post(slack), "approve", APPROVER)
    assert not delivery.acked
    assert "Connect" in delivery.why
    assert delivery.attempts == 1
