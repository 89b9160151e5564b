"""Socket Mode on the raw wire, and the real client when its sockets are taken away."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.boltapp import BoltApp
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL
from tests.lab.tests.slack.plainclient import call

Socket = aiohttp.ClientWebSocketResponse


def ticket(slack: Slack) -> str:
    return str(call(slack, "apps.connections.open", token=slack.app_token)["url"])


def on_socket(url: str, work: Callable[[Socket], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            return await work(socket)

    return asyncio.run(run())


async def hello(socket: Socket) -> Any:
    return await socket.receive_json(timeout=20)


def test_a_ticket_opens_one_connection_which_says_hello(slack: Slack) -> None:
    url = ticket(slack)
    first = on_socket(url, hello)
    assert first["type"] == "hello"
    assert first["num_connections"] == 1
    with pytest.raises(aiohttp.WSServerHandshakeError):
        on_socket(url, hello)


def test_an_event_without_an_ack_comes_again_and_says_so(slack: Slack) -> None:
    slack.outbox.retry_seconds = (0.0, 0.05, 0.05)

    async def silent(socket: Socket) -> list[Any]:
        await hello(socket)
        sent = asyncio.create_task(asyncio.to_thread(slack.open_home, APPROVER))
        envelopes = [await socket.receive_json(timeout=20) for _ in range(2)]
        await socket.send_json({"envelope_id": envelopes[1]["envelope_id"]})
        delivery = await sent
        await asyncio.to_thread(slack.wait_for, lambda: delivery.acked)
        return [*envelopes, delivery]

    first, second, delivery = on_socket(ticket(slack), silent)
    assert [first["retry_attempt"], second["retry_attempt"]] == [0, 1]
    assert second["retry_reason"] == "http_timeout"
    assert first["payload"]["event_id"] == second["payload"]["event_id"]
    assert delivery.attempts == 2


def test_a_command_whose_ack_is_late_is_lost_and_the_person_is_told(slack: Slack) -> None:
    async def late(socket: Socket) -> Any:
        await hello(socket)
        sent = asyncio.create_task(asyncio.to_thread(slack.slash, APPROVER, CHANNEL, "status"))
        envelope = await socket.receive_json(timeout=20)
        delivery = await sent
        await socket.send_json({"envelope_id": envelope["envelope_id"], "payload": {"text": "too late"}})
        await asyncio.to_thread(slack.wait_for, lambda: delivery.late)
        return envelope, delivery

    envelope, delivery = on_socket(ticket(slack), late)
    assert envelope["accepts_response_payload"]
    assert "retry_attempt" not in envelope
    assert not delivery.acked
    assert [m["text"] for m in slack.ephemerals(APPROVER)] == [
        "/cluster failed with the error “operation_timeout”"
    ]


def test_without_a_connection_the_person_is_told_at_once(slack: Slack) -> None:
    delivery = slack.slash(APPROVER, CHANNEL, "status")
    assert (delivery.acked, delivery.why) == (False, "no connection")
    assert "dispatch_failed" in slack.ephemerals(APPROVER)[0]["text"]


def test_each_delivery_goes_to_one_of_the_connections(slack: Slack) -> None:
    with BoltApp(slack) as one, BoltApp(slack) as two:
        slack.wait_for(lambda: slack.connections == 2)
        used = {slack.slash(APPROVER, CHANNEL, str(number)).connection for number in range(12)}
        assert used == {1, 2}
        assert len(one.seen) + len(two.seen) == 12


def test_an_eleventh_connection_is_sent_away(slack: Slack) -> None:
    async def run() -> Any:
        async with aiohttp.ClientSession() as session:
            sockets = [await session.ws_connect(ticket(slack)) for _ in range(11)]
            goodbye = await sockets[-1].receive_json(timeout=20)
            end = await sockets[-1].receive(timeout=20)
            for socket in sockets:
                await socket.close()
            return goodbye, end

    goodbye, end = asyncio.run(run())
    assert goodbye["reason"] == "too_many_websockets"
    assert end.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


def test_pings_come_back_with_their_own_words(slack: Slack) -> None:
    async def ping(socket: Socket) -> Any:
        await hello(socket)
        await socket.ping(b"sdk-ping-pong:1")
        return await socket.receive(timeout=20)

    async def run() -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(ticket(slack), autoping=False) as socket,
        ):
            return await ping(socket)

    answer = asyncio.run(run())
    assert (answer.type, bytes(answer.data)) == (aiohttp.WSMsgType.PONG, b"sdk-ping-pong:1")


@pytest.mark.parametrize("trouble", ["disconnect", "kill_sockets", "freeze_sockets"])
def test_the_real_client_comes_back_after_losing_its_socket(slack: Slack, trouble: str) -> None:
    with BoltApp(slack, ping_seconds=1):
        slack.wait_for(lambda: slack.connections == 1)
        getattr(slack, trouble)()
        slack.wait_for(lambda: len(slack.calls("apps.connections.open")) >= 2)
        slack.wait_for(lambda: slack.connections == 1)
        delivery = slack.slash(APPROVER, CHANNEL, "status")
        assert delivery.acked, delivery.why
        assert delivery.connection == 2


def test_the_real_client_comes_back_when_slack_was_down(slack: Slack, bolt: BoltApp) -> None:
    slack.stop()
    slack.start()
    slack.wait_for(lambda: slack.connections == 1)
    assert slack.slash(APPROVER, CHANNEL, "status").acked


def test_a_warning_announces_and_does_not_close(slack: Slack) -> None:
    async def warned(socket: Socket) -> Any:
        await hello(socket)
        await asyncio.to_thread(slack.disconnect, "warning")
        message = json.loads((await socket.receive(timeout=20)).data)
        return message, slack.connections

    message, connections = on_socket(ticket(slack), warned)
    assert message["reason"] == "warning"
    assert connections == 1
