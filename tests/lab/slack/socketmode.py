"""Socket Mode: tickets that work once, hello, envelopes and acks, and all ways to lose a connection."""

import asyncio
import json
import uuid
from dataclasses import dataclass, field

from aiohttp import WSMsgType, web

from tests.lab.slack.delivery import ACK_SECONDS, Delivery, accepts_response
from tests.lab.slack.webapi import reset
from tests.lab.slack.wire import Json
from tests.lab.slack.workspace import Workspace

# Slack's limit of simultaneous connections of one app (docs of Socket Mode).
CONNECTIONS = 10
# Slack pings too; a socket that answers none of its pings is dropped by the client's own watchdog first.
PING_SECONDS = 10.0
# Between `disconnect` and the closing: both at once make the real client reconnect twice.
GOODBYE_SECONDS = 0.2


@dataclass(eq=False)
class Connection:
    """One WebSocket of the app. Frozen: it looks open, but nothing comes through any more."""

    number: int
    socket: web.WebSocketResponse
    request: web.Request
    frozen: bool = False
    waiting: dict[str, "asyncio.Future[None]"] = field(default_factory=dict)
    sent: dict[str, tuple[Delivery, float]] = field(default_factory=dict)


class SocketMode:
    """All connections of the app; lives on the emulator's event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tickets: set[str] = set()
        self._count = 0
        self.connections: list[Connection] = []

    def ticket(self) -> str:
        """A new ticket, good for one connection."""
        ticket = str(uuid.UUID(int=self._workspace.random.getrandbits(128)))
        self._tickets.add(ticket)
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection from its ticket to its end."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=408, text="ticket is not valid")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False, max_msg_size=16 * 1024 * 1024)
        await socket.prepare(request)
        if len(self.connections) >= CONNECTIONS:
            await self._say_goodbye(socket, "too_many_websockets")
            return socket
        self._count += 1
        connection = Connection(self._count, socket, request)
        with self._workspace.changed:
            self.connections.append(connection)
        pings = asyncio.create_task(self._ping(connection))
        try:
            await self._hello(connection)
            await self._listen(connection)
        finally:
            pings.cancel()
            self._forget(connection)
        return socket

    async def send(self, delivery: Delivery, retry_attempt: int, retry_reason: str) -> bool:
        """Send to one connection picked at random. True: an event may be tried again."""
        if not self.connections:
            delivery.why = "no connection"
            return True
        connection = self._workspace.random.choice(self.connections)
        delivery.connection = connection.number
        envelope: Json = {
            "envelope_id": str(uuid.UUID(int=self._workspace.random.getrandbits(128))),
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": accepts_response(delivery),
        }
        if delivery.kind == "events_api":
            envelope |= {"retry_attempt": retry_attempt, "retry_reason": retry_reason}
        await self._exchange(connection, envelope, delivery)
        return True

    async def disconnect(self, reason: str) -> None:
        """Ask every connection to go, then close it, as Slack does when it refreshes."""
        await asyncio.gather(
            *(self._say_goodbye(connection.socket, reason) for connection in self.connections)
        )

    def kill(self) -> None:
        """Reset every connection without a word."""
        for connection in list(self.connections):
            reset(connection.request)

    def freeze(self) -> None:
        """Leave every connection half open: no data, no pong, no end."""
        for connection in self.connections:
            connection.frozen = True

    async def close(self) -> None:
        """End every connection because the whole service stops."""
        for connection in list(self.connections):
            await connection.socket.close(code=1001)

    async def _exchange(self, connection: Connection, envelope: Json, delivery: Delivery) -> None:
        loop = asyncio.get_running_loop()
        name = envelope["envelope_id"]
        answer: asyncio.Future[None] = loop.create_future()
        connection.waiting[name] = answer
        connection.sent[name] = (delivery, loop.time())
        try:
            if not connection.frozen:
                await connection.socket.send_str(json.dumps(envelope))
            await asyncio.wait_for(answer, ACK_SECONDS)
        except TimeoutError:
            delivery.why = f"no ack within {ACK_SECONDS:g} s"
        except (ConnectionError, RuntimeError):
            delivery.why = "connection lost"
        finally:
            connection.waiting.pop(name, None)

    async def _hello(self, connection: Connection) -> None:
        hello = {
            "type": "hello",
            "num_connections": len(self.connections),
            "debug_info": {"host": "applink-lab", "approximate_connection_time": 18060},
            "connection_info": {"app_id": self._workspace.app.app_id},
        }
        await connection.socket.send_str(json.dumps(hello))
        self._workspace.touch()

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.socket:
            if connection.frozen:
                continue
            if message.type == WSMsgType.PING:
                await connection.socket.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._note_ack(connection, message.data)

    def _note_ack(self, connection: Connection, text: str) -> None:
        try:
            ack = json.loads(text)
        except ValueError:
            return
        name = ack.get("envelope_id") if isinstance(ack, dict) else None
        answer = connection.waiting.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or name not in connection.sent:
            return
        delivery, sent_at = connection.sent[name]
        seconds = asyncio.get_running_loop().time() - sent_at
        with self._workspace.changed:
            if answer is not None and not answer.done():
                delivery.accept(ack.get("payload") or {}, seconds)
                answer.set_result(None)
            elif not delivery.acked:
                delivery.late, delivery.seconds = True, seconds
            self._workspace.touch()

    async def _ping(self, connection: Connection) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            if not connection.frozen and not connection.socket.closed:
                await connection.socket.ping(b"Ping from applink-lab")

    def _forget(self, connection: Connection) -> None:
        with self._workspace.changed:
            if connection in self.connections:
                self.connections.remove(connection)
        for answer in connection.waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("the connection ended"))
        self._workspace.touch()

    async def _say_goodbye(self, socket: web.WebSocketResponse, reason: str) -> None:
        try:
            goodbye = {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-lab"}}
            await socket.send_str(json.dumps(goodbye))
        except (ConnectionError, RuntimeError):
            return
        if reason != "warning":
            await asyncio.sleep(GOODBYE_SECONDS)
            await socket.close()
