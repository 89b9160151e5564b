"""Every planned fault shows on the wire, and only as often as planned."""

import time

import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.conftest import CHANNEL
from tests.lab.tests.slack.plainclient import call, send

METHOD = "chat.postMessage"


def raw(slack: Slack) -> tuple[int, str, dict[str, str]]:
    body = b'{"channel": "C0GPU0001", "text": "x"}'
    return send(slack.base_url + METHOD, body, "application/json", slack.bot_token)


def test_a_rate_limit_says_how_long_to_wait(slack: Slack) -> None:
    slack.faults.ratelimited(METHOD, retry_after_seconds=7)
    status, text, headers = raw(slack)
    assert (status, headers["Retry-After"]) == (429, "7")
    assert "ratelimited" in text
    assert raw(slack)[0] == 200
    assert len(slack.messages(CHANNEL)) == 1


def test_a_server_error_does_nothing(slack: Slack) -> None:
    slack.faults.status(METHOD, 503, times=2)
    assert [raw(slack)[0] for _ in range(3)] == [503, 503, 200]
    assert len(slack.messages(CHANNEL)) == 1


def test_an_error_may_carry_more_than_its_name(slack: Slack) -> None:
    slack.faults.error(METHOD, "missing_scope", needed="chat:write", provided="users:read", times=None)
    assert call(slack, METHOD, channel=CHANNEL, text="x")["needed"] == "chat:write"
    slack.faults.clear(METHOD)
    assert call(slack, METHOD, channel=CHANNEL, text="x")["ok"]


def test_a_slow_call_is_carried_out(slack: Slack) -> None:
    slack.faults.slow("*", 0.3)
    started = time.monotonic()
    assert raw(slack)[0] == 200
    assert time.monotonic() - started >= 0.3


def test_a_reset_after_processing_leaves_the_message_there(slack: Slack) -> None:
    slack.faults.reset_after(METHOD)
    with pytest.raises((ConnectionError, OSError)):
        raw(slack)
    assert len(slack.messages(CHANNEL)) == 1


def test_a_reset_before_processing_leaves_nothing(slack: Slack) -> None:
    slack.faults.reset_before(METHOD)
    with pytest.raises((ConnectionError, OSError)):
        raw(slack)
    assert slack.messages(CHANNEL) == []
    assert slack.calls(METHOD)[0].fault == "reset_before"
