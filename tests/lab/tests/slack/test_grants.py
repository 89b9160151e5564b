"""Trigger ids live three seconds and work once; response URLs live thirty minutes and work five times."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.boltapp import HOME_VIEW, REASON_VIEW, BoltApp
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL
from tests.lab.tests.slack.plainclient import call, post_json

Json = dict[str, Any]


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slack(clock: Clock) -> Iterator[Slack]:
    emulator = Slack(seed=1, clock=clock)
    emulator.add_channel(CHANNEL, "gpu-incidents")
    emulator.add_user(APPROVER, "Example Approver", "approver@example.com")
    with emulator:
        yield emulator


def given(slack: Slack) -> Json:
    """What a command that nobody answers hands to the app."""
    return slack.slash(APPROVER, CHANNEL, "status").payload


def open_view(slack: Slack, trigger: object) -> str:
    answer = call(slack, "views.open", trigger_id=trigger, view=REASON_VIEW)
    return "ok" if answer["ok"] else str(answer["error"])


def test_a_trigger_works_once(slack: Slack) -> None:
    trigger = given(slack)["trigger_id"]
    assert [open_view(slack, trigger), open_view(slack, trigger)] == ["ok", "exchanged_trigger_id"]
    assert open_view(slack, "1.2.made-up") == "invalid_trigger_id"
    assert [view["callback_id"] for view in slack.views(APPROVER)] == ["reason"]


def test_a_trigger_is_too_old_after_three_seconds(slack: Slack, clock: Clock) -> None:
    early, late = given(slack)["trigger_id"], given(slack)["trigger_id"]
    clock.now += 2.9
    assert open_view(slack, early) == "ok"
    clock.now += 0.2
    assert open_view(slack, late) == "expired_trigger_id"


def test_a_bad_view_does_not_use_up_the_trigger(slack: Slack) -> None:
    trigger = given(slack)["trigger_id"]
    bad = call(slack, "views.open", trigger_id=trigger, view={"type": "modal"})
    assert bad["error"] == "invalid_arguments"
    assert open_view(slack, trigger) == "ok"


def test_views_stack_three_high_and_update_under_their_hash(slack: Slack) -> None:
    view = call(slack, "views.open", trigger_id=given(slack)["trigger_id"], view=REASON_VIEW)["view"]
    pushed = [
        call(slack, "views.push", trigger_id=given(slack)["trigger_id"], view=REASON_VIEW) for _ in range(3)
    ]
    assert [answer.get("error") for answer in pushed] == [None, None, "push_limit_reached"]
    stale = call(slack, "views.update", view_id=view["id"], hash="0.0", view=REASON_VIEW)
    assert stale["error"] == "hash_conflict"
    fresh = call(slack, "views.update", view_id=view["id"], hash=view["hash"], view=REASON_VIEW)
    assert fresh["view"]["id"] == view["id"]
    assert call(slack, "views.update", view_id="V0", view=REASON_VIEW)["error"] == "not_found"


def test_a_home_is_published_under_its_hash(slack: Slack) -> None:
    view = call(slack, "views.publish", user_id=APPROVER, view=HOME_VIEW)["view"]
    newer = call(slack, "views.publish", user_id=APPROVER, view=HOME_VIEW, hash=view["hash"])
    assert newer["view"]["id"] == view["id"]
    stale = call(slack, "views.publish", user_id=APPROVER, view=HOME_VIEW, hash=view["hash"])
    assert stale["error"] == "hash_conflict"
    assert call(slack, "views.publish", user_id="U0NOBODY", view=HOME_VIEW)["error"] == "user_not_found"


def test_a_response_url_works_five_times(slack: Slack) -> None:
    url = given(slack)["response_url"]
    statuses = [post_json(url, {"text": str(number)})[0] for number in range(6)]
    assert statuses == [200] * 5 + [404]
    assert post_json(url, {"text": "x"})[1]["error"] == "used_url"
    assert [m["text"] for m in slack.ephemerals(APPROVER)][-5:] == ["0", "1", "2", "3", "4"]


def test_a_response_url_is_too_old_after_thirty_minutes(slack: Slack, clock: Clock) -> None:
    url = given(slack)["response_url"]
    clock.now += 1799
    assert post_json(url, {"text": "in time", "response_type": "in_channel"})[0] == 200
    clock.now += 2
    assert post_json(url, {"text": "x"}) == (404, {"ok": False, "error": "expired_url"})
    assert [m["text"] for m in slack.messages(CHANNEL)] == ["in time"]


def test_a_response_url_replaces_and_deletes_an_ephemeral_message(slack: Slack) -> None:
    button = {"type": "button", "action_id": "go", "text": {"type": "plain_text", "text": "Go"}}
    blocks = [{"type": "actions", "elements": [button]}]
    call(slack, "chat.postEphemeral", channel=CHANNEL, user=APPROVER, text="ask", blocks=blocks)
    ts = slack.ephemerals(APPROVER)[0]["ts"]
    payload = slack.click(CHANNEL, ts, "go", APPROVER).payload
    assert payload["container"]["is_ephemeral"]
    assert "message" not in payload
    assert call(slack, "chat.update", channel=CHANNEL, ts=ts, text="x")["error"] == "message_not_found"
    assert post_json(payload["response_url"], {"text": "done", "replace_original": True})[0] == 200
    assert [m["text"] for m in slack.ephemerals(APPROVER)] == ["done"]
    assert post_json(payload["response_url"], {"delete_original": True})[0] == 200
    assert slack.ephemerals(APPROVER) == []


def test_a_bad_answer_to_a_response_url_is_refused(slack: Slack) -> None:
    url = given(slack)["response_url"]
    assert post_json(url, {"blocks": [{"type": "shout"}]})[1]["error"] == "invalid_blocks"


def test_a_submission_without_its_required_field_is_never_sent(slack: Slack, bolt: BoltApp) -> None:
    call(slack, "views.open", trigger_id=given(slack)["trigger_id"], view=REASON_VIEW)
    before = len(slack.deliveries)
    assert slack.submit(APPROVER, {"text": ""}).errors == {"why": "Please complete this required field."}
    assert len(slack.deliveries) == before
    assert slack.submit(APPROVER, {"text": "by its action id"}).acked
