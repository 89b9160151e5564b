"""Slack's Web API as the bot uses it: "not done", "unknown" and "never" told apart, forgeries ignored."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.chat import ChatRefusedError, ChatUnavailableError, ChatUnknownError, MessageMetadata
from bot.loops.rate_limit import RateLimit
from bot.messages.blocks import Message, section
from bot.metrics import Metrics
from bot.slack.outbound import EVENT_TYPE, SlackChat
from tests.bot.people import APPROVER, CHANNEL, GUEST, ROBOT, SHY, people
from tests.bot.samples import NOW
from tests.lab.slack.emulator import Slack

MARK = MessageMetadata("gpu-01-a1b2c3", "root", "d" * 16, 3, "s" * 16)
HELLO = Message("hello", (section("hello"),))
SINCE = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def slack() -> Iterator[Slack]:
    emulator = Slack()
    people(emulator)
    with emulator:
        yield emulator


def with_chat(slack: Slack, work: Callable[[SlackChat], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        chat = SlackChat.connect(slack.base_url, 2, lambda: slack.bot_token, CHANNEL, Metrics())
        await chat.authenticate()
        return await work(chat)

    return asyncio.run(run())


def test_what_was_posted_is_found_again_with_its_metadata(slack: Slack) -> None:
    async def work(chat: SlackChat) -> Any:
        ts = await chat.post(HELLO, MARK)
        await chat.post(HELLO, MessageMetadata("gpu-01-a1b2c3", "approved-1", "e" * 16, 3, "s" * 16), ts)
        return ts, await chat.roots(SINCE), await chat.thread(CHANNEL, ts)

    ts, roots, thread = with_chat(slack, work)
    assert [(each.ts, each.metadata) for each in roots] == [(ts, MARK)]
    assert [each.metadata.part for each in thread] == ["root", "approved-1"]


def test_metadata_that_somebody_else_wrote_is_not_believed(slack: Slack) -> None:
    payload = {"incident": "gpu-01-a1b2c3", "part": "root", "digest": "d", "revision": 9, "stamp": "s"}
    with slack.workspace.changed:
        slack.workspace.add(
            slack.channel(CHANNEL), APPROVER, "forged", [],
            metadata={"event_type": EVENT_TYPE, "event_payload": payload},
        )  # fmt: skip

    async def work(chat: SlackChat) -> Any:
        return await chat.roots(SINCE)

    assert with_chat(slack, work) == ()


def test_no_post_unfurls_links(slack: Slack) -> None:
    async def work(chat: SlackChat) -> Any:
        await chat.post(HELLO, MARK)

    with_chat(slack, work)
    (call,) = slack.calls("chat.postMessage")
    assert (str(call.args["unfurl_links"]).lower(), str(call.args["unfurl_media"]).lower()) in (
        ("false", "false"), ("0", "0"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (lambda faults: faults.ratelimited("chat.postMessage", 7), ChatUnavailableError),
        (lambda faults: faults.error("chat.postMessage", "not_in_channel"), ChatUnavailableError),
        (lambda faults: faults.error("chat.postMessage", "token_revoked"), ChatUnavailableError),
        (lambda faults: faults.error("chat.postMessage", "invalid_blocks"), ChatRefusedError),
        (lambda faults: faults.error("chat.postMessage", "fatal_error"), ChatUnknownError),
        (lambda faults: faults.status("chat.postMessage", 503), ChatUnknownError),
        (lambda faults: faults.status("chat.postMessage", 500), ChatUnknownError),
        (lambda faults: faults.reset_before("chat.postMessage"), ChatUnknownError),
        (lambda faults: faults.reset_after("chat.postMessage"), ChatUnknownError),
        (lambda faults: faults.slow("chat.postMessage", 5), ChatUnknownError),
    ],
)
def test_how_a_call_ended_is_told_for_what_it_is_and_it_is_sent_once(
    slack: Slack, plan: Callable[[Any], None], expected: type[Exception]
) -> None:
    async def work(chat: SlackChat) -> None:
        plan(slack.faults)
        with pytest.raises(expected):
            await chat.post(HELLO, MARK)

    with_chat(slack, work)
    assert len(slack.calls("chat.postMessage")) <= 1
    assert len(slack.messages(CHANNEL)) <= 1


def test_a_limited_method_is_paused_and_the_others_are_not(slack: Slack) -> None:
    async def work(chat: SlackChat) -> float:
        slack.faults.ratelimited("chat.postMessage", 7)
        for _ in range(3):
            with pytest.raises(ChatUnavailableError) as found:
                await chat.post(HELLO, MARK)
        assert await chat.account(APPROVER) is not None
        return found.value.retry_after_seconds

    assert 5 < with_chat(slack, work) <= 7
    assert len(slack.calls("chat.postMessage")) == 1


def test_a_slack_that_is_away_is_unavailable_and_nothing_is_lost(slack: Slack) -> None:
    async def work(chat: SlackChat) -> None:
        slack.stop()
        with pytest.raises(ChatUnavailableError):
            await chat.post(HELLO, MARK)
        slack.start()
        await asyncio.sleep(1.1)
        await chat.post(HELLO, MARK)

    with_chat(slack, work)
    assert len(slack.messages(CHANNEL)) == 1


def test_accounts_are_what_slack_says(slack: Slack) -> None:
    async def work(chat: SlackChat) -> Any:
        return [await chat.account(user) for user in (APPROVER, GUEST, SHY, ROBOT, "U0NOBODY")]

    approver, guest, shy, robot, nobody = with_chat(slack, work)
    assert (approver.email, approver.bot, approver.guest) == ("approver@example.com", False, False)
    assert guest.guest
    assert shy.email is None
    assert robot.bot
    assert nobody is None


def test_the_token_is_read_again_for_each_call(slack: Slack) -> None:
    tokens = iter([slack.bot_token, "xoxb-old-example", slack.bot_token])

    async def run() -> None:
        chat = SlackChat.connect(slack.base_url, 2, lambda: next(tokens), CHANNEL, Metrics())
        await chat.authenticate()
        with pytest.raises(ChatUnavailableError):
            await chat.account(APPROVER)

    asyncio.run(run())


def test_a_bucket_lets_a_burst_pass_and_then_one_at_a_time() -> None:
    bucket = RateLimit(3, timedelta(seconds=2))
    assert [bucket.take(NOW) for _ in range(5)] == [True, True, True, False, False]
    assert not bucket.take(NOW + timedelta(seconds=1))
    assert bucket.take(NOW + timedelta(seconds=2))
    assert not bucket.take(NOW + timedelta(seconds=2))
    assert [bucket.take(NOW + timedelta(minutes=9)) for _ in range(4)] == [True, True, True, False]
