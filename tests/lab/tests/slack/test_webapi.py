"""The Web API answers as Slack does, for good calls and for bad ones."""

import re
from typing import Any

import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL
from tests.lab.tests.slack.plainclient import call, call_form, send


def post(slack: Slack, **args: Any) -> dict[str, Any]:
    return call(slack, "chat.postMessage", channel=CHANNEL, **args)


def test_a_form_with_a_token_argument_works_like_json_with_a_header(slack: Slack) -> None:
    answer = call_form(
        slack,
        "chat.postMessage",
        token=slack.bot_token,
        channel=CHANNEL,
        text="hello",
        blocks='[{"type":"divider"}]',
        metadata='{"event_type":"incident","event_payload":{"id":"i-1"}}',
    )
    assert answer["ok"]
    assert slack.messages(CHANNEL)[0]["metadata"]["event_payload"] == {"id": "i-1"}
    assert slack.messages(CHANNEL)[0]["blocks"][0]["type"] == "divider"


@pytest.mark.parametrize(
    ("token", "method", "error"),
    [
        ("", "auth.test", "not_authed"),
        ("xoxb-wrong", "auth.test", "invalid_auth"),
        ("app", "chat.postMessage", "not_allowed_token_type"),
        ("bot", "apps.connections.open", "not_allowed_token_type"),
        ("bot", "chat.shout", "unknown_method"),
    ],
)
def test_a_token_of_the_wrong_kind_is_refused(slack: Slack, token: str, method: str, error: str) -> None:
    real = {"app": slack.app_token, "bot": slack.bot_token}.get(token, token)
    assert call(slack, method, token=real)["error"] == error


def test_methods_that_take_forms_only_do_not_see_a_json_body(slack: Slack) -> None:
    assert call(slack, "users.info", user=APPROVER)["error"] == "invalid_arguments"
    answer = call_form(slack, "users.info", token=slack.bot_token, user=APPROVER)
    assert answer["user"]["profile"]["email"] == "approver@example.com"


@pytest.mark.parametrize(
    ("body", "error"), [(b"{", "invalid_json"), (b"[]", "json_not_object"), (b'"x"', "json_not_object")]
)
def test_a_body_that_is_not_an_object_is_refused(slack: Slack, body: bytes, error: str) -> None:
    text = send(slack.base_url + "chat.postMessage", body, "application/json", slack.bot_token)[1]
    assert error in text


def test_channels_refuse_what_slack_refuses(slack: Slack) -> None:
    slack.add_channel("C0OTHER01", "other", is_member=False)
    slack.add_channel("C0OLD0001", "old", is_archived=True)
    errors = [
        call(slack, "chat.postMessage", channel=channel, text="x")["error"]
        for channel in ("C0NOTHERE", "C0OTHER01", "C0OLD0001")
    ]
    assert errors == ["channel_not_found", "not_in_channel", "is_archived"]
    assert call(slack, "conversations.join", channel="C0OTHER01")["ok"]
    assert call(slack, "chat.postMessage", channel="C0OTHER01", text="x")["ok"]
    assert post(slack)["error"] == "no_text"


def test_every_ts_is_a_new_growing_string(slack: Slack) -> None:
    stamps = [post(slack, text=str(number))["ts"] for number in range(20)]
    assert stamps == sorted(set(stamps))
    assert all(re.fullmatch(r"\d{10}\.\d{6}", ts) for ts in stamps)


def test_an_update_replaces_text_and_blocks_and_keeps_metadata(slack: Slack) -> None:
    metadata = {"event_type": "incident", "event_payload": {"revision": 1}}
    ts = post(slack, text="one", blocks=[{"type": "divider"}], metadata=metadata)["ts"]
    assert call(slack, "chat.update", channel=CHANNEL, ts=ts, text="two")["ok"]
    message = slack.messages(CHANNEL)[0]
    assert message["text"] == "two"
    assert "blocks" not in message
    assert message["metadata"] == metadata
    assert [version.text for version in slack.versions(CHANNEL, ts)] == ["one", "two"]


def test_an_update_names_what_it_cannot_do(slack: Slack) -> None:
    ts = post(slack, text="one")["ts"]
    theirs = slack.say(APPROVER, CHANNEL, "mine")

    def error(**args: Any) -> str:
        return str(call(slack, "chat.update", channel=CHANNEL, **args)["error"])

    assert error(ts=ts, text="x" * 4001) == "msg_too_long"
    assert error(ts="1700000000.000000", text="x") == "message_not_found"
    assert error(ts=float(ts), text="x") == "message_not_found"
    assert error(ts=theirs, text="x") == "cant_update_message"


def test_a_long_post_is_cut_and_not_refused(slack: Slack) -> None:
    post(slack, text="x" * 50_000)
    assert len(slack.messages(CHANNEL)[0]["text"]) == 40_000


def test_a_thread_ts_that_is_a_number_loses_the_message(slack: Slack) -> None:
    root = post(slack, text="root")["ts"]
    assert post(slack, text="seen", thread_ts=root)["ok"]
    assert post(slack, text="lost", thread_ts=float(root))["ok"]
    assert [reply["text"] for reply in slack.replies(CHANNEL, root)] == ["seen"]
    assert [message["text"] for message in slack.lost(CHANNEL)] == ["lost"]
    assert slack.messages(CHANNEL)[0]["reply_count"] == 1


def test_history_is_newest_first_and_pages(slack: Slack) -> None:
    for number in range(5):
        post(slack, text=str(number), metadata={"event_type": "n", "event_payload": {"n": number}})
    first = call(slack, "conversations.history", channel=CHANNEL, limit=3)
    assert [message["text"] for message in first["messages"]] == ["4", "3", "2"]
    assert first["has_more"]
    assert "metadata" not in first["messages"][0]
    cursor = first["response_metadata"]["next_cursor"]
    rest = call(
        slack, "conversations.history", channel=CHANNEL, limit=3, cursor=cursor, include_all_metadata=True
    )
    assert [message["metadata"]["event_payload"]["n"] for message in rest["messages"]] == [1, 0]


def test_replies_give_the_root_first(slack: Slack) -> None:
    root = post(slack, text="root")["ts"]
    for word in ("a", "b"):
        post(slack, text=word, thread_ts=root)
    answer = call_form(slack, "conversations.replies", token=slack.bot_token, channel=CHANNEL, ts=root)
    assert [message["text"] for message in answer["messages"]] == ["root", "a", "b"]


def test_a_deleted_root_leaves_a_tombstone_for_its_replies(slack: Slack) -> None:
    root, lone = post(slack, text="root")["ts"], post(slack, text="lone")["ts"]
    post(slack, text="reply", thread_ts=root)
    for ts in (root, lone):
        assert call(slack, "chat.delete", channel=CHANNEL, ts=ts)["ok"]
    assert [message["subtype"] for message in slack.messages(CHANNEL)] == ["tombstone"]
    assert call(slack, "chat.update", channel=CHANNEL, ts=root, text="x")["error"] == "message_not_found"


def test_an_ephemeral_message_is_seen_by_one_person(slack: Slack) -> None:
    slack.add_user("U0OTHER01", "Other Person", "other@example.com")
    assert call(slack, "chat.postEphemeral", channel=CHANNEL, user=APPROVER, text="psst")["ok"]
    assert [message["text"] for message in slack.ephemerals(APPROVER)] == ["psst"]
    assert slack.ephemerals("U0OTHER01") == []
    assert slack.messages(CHANNEL) == []
    bad = call(slack, "chat.postEphemeral", channel=CHANNEL, user="U0NOBODY", text="psst")
    assert bad["error"] == "user_not_in_channel"


def test_people_and_groups_are_looked_up(slack: Slack) -> None:
    slack.set_group("S0APPROVE", [APPROVER])
    token = slack.bot_token
    by_mail = call_form(slack, "users.lookupByEmail", token=token, email="approver@example.com")
    assert by_mail["user"]["id"] == APPROVER
    assert call_form(slack, "users.lookupByEmail", token=token, email="x@example.com")["error"] == (
        "users_not_found"
    )
    assert call_form(slack, "usergroups.users.list", token=token, usergroup="S0APPROVE")["users"] == [
        APPROVER
    ]
    assert call_form(slack, "usergroups.users.list", token=token, usergroup="S0X")["error"] == (
        "no_such_subteam"
    )


def test_a_permalink_leads_to_the_page(slack: Slack) -> None:
    ts = post(slack, text="here")["ts"]
    answer = call_form(slack, "chat.getPermalink", token=slack.bot_token, channel=CHANNEL, message_ts=ts)
    assert answer["permalink"] == f"{slack.page_url}archives/{CHANNEL}/p{ts.replace('.', '')}"


def test_a_reaction_is_added_once(slack: Slack) -> None:
    ts = post(slack, text="x")["ts"]
    args = {"channel": CHANNEL, "timestamp": ts, "name": "eyes"}
    assert call(slack, "reactions.add", **args)["ok"]
    assert call(slack, "reactions.add", **args)["error"] == "already_reacted"


def test_state_and_port_survive_a_stop(slack: Slack) -> None:
    post(slack, text="before")
    address = slack.base_url
    slack.stop()
    with pytest.raises(OSError, match="refused"):
        post(slack, text="while down")
    assert slack.messages(CHANNEL)[0]["text"] == "before"
    with pytest.raises(ConnectionError, match="stopped"):
        slack.slash(APPROVER, CHANNEL, "status")
    slack.start()
    assert slack.base_url == address
    assert post(slack, text="after")["ok"]


def test_requests_are_kept_without_the_token(slack: Slack) -> None:
    post(slack, text="x")
    logged = slack.calls("chat.postMessage")[0]
    assert logged.args == {"channel": CHANNEL, "text": "x"}
    assert logged.answer["ok"]
    assert slack.bot_token not in repr(slack.requests)


def test_rate_limits_are_kept_when_a_test_turns_them_on(slack: Slack) -> None:
    slack.api.limits.enforced = True
    answers = [post(slack, text=str(number)) for number in range(12)]
    assert [answer["ok"] for answer in answers].count(False) == 2
    assert answers[-1]["error"] == "ratelimited"
