"""What surrounds a repair in its tests: a process that may be killed, a machine, the incident branch, the bot."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import msgspec

from checks.report import HeldReport
from reconciler.incidents.progress import OrderResult
from reconciler.kube.connection import ApiResponse, Connection, Object
from reconciler.repair.providers.provider import Machine, Order, OrderOutcome, Power, UnknownMachine
from reconciler.source.recording import AlreadyRecordedError, Commit, RecordUnavailableError

Result = TypeVar("Result")


class Killed(BaseException):
    """The process ends here, as by kill -9: nothing catches it, nothing is cleaned up."""


class CrashPoint:
    """Ends the process before or after its n-th change of the outside; None never does."""

    def __init__(self, at: int | None = None, *, after: bool = False) -> None:
        self.at, self.after, self.count, self.renewals = at, after, 0, 0
        self.before_change: Callable[[int], None] = lambda _number: None
        self.after_change: Callable[[int], None] = lambda _number: None

    def pass_through(self, change: Callable[[], Result]) -> Result:
        self.count += 1
        number = self.count
        self.before_change(number)
        if number == self.at and not self.after:
            raise Killed
        result = change()
        if number == self.at:
            raise Killed
        self.after_change(number)
        return result


class CrashableConnection(Connection):
    """The wire to the API server of one process, which may be killed at any of its writes."""

    def __init__(self, wire: Connection, crash: CrashPoint, tick: Callable[[], None]) -> None:
        self._wire, self._crash, self._tick = wire, crash, tick

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        params: Any = None,
        content_type: str = "application/json",
    ) -> ApiResponse:
        send = self._wire.request
        self._tick()
        if method == "GET":
            return send(method, path, body, params, content_type)
        self._crash.renewals += method == "PATCH" and bool(((body or {}).get("spec") or {}).get("renewTime"))
        return self._crash.pass_through(lambda: send(method, path, body, params, content_type))


@dataclass
class Bmc:
    """A machine that boots some time after an order, as machines do.

    It loses power `delay` after an order and boots after another `off`: `lose_power` and `obey` say what that
    does to the node. `say` is what the caller hears of the order, `knows` what it hears later; `resets` are
    the orders that were carried out.
    """

    obey: Callable[[str], object]
    lose_power: Callable[[datetime], None]
    clock: Callable[[], datetime]
    off: timedelta
    delay: timedelta = timedelta(seconds=3)
    power: Power = Power.ON
    offered: frozenset[Order] = frozenset(Order)
    blind: bool = False
    say: OrderOutcome = field(default_factory=lambda: OrderOutcome(OrderResult.ACCEPTED))
    knows: OrderOutcome = field(default_factory=lambda: OrderOutcome(OrderResult.UNKNOWN))
    ignores: int = 0
    due: list[tuple[datetime, str]] = field(default_factory=list)
    boots: list[tuple[datetime, str]] = field(default_factory=list)
    resets: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Carry out the orders that are due, and boot when the machine has been off long enough."""
        ready = [each for each in self.due if each[0] <= self.clock()]
        self.due = [each for each in self.due if each not in ready]
        for at, order in ready:
            self.resets.append(order)
            self.power = Power.OFF
            self.boots = [(at + self.off, order)]
            self.lose_power(at)
        for at, order in list(self.boots):
            if at <= self.clock():
                self.boots = []
                self.power = Power.ON
                self.obey(order)


@dataclass
class BmcClient:
    """The way to the machine from one process, which may be killed at the order."""

    bmc: Bmc
    crash: CrashPoint
    tick: Callable[[], None] = lambda: None

    def observe(self, _machine: str, /) -> Machine | UnknownMachine:
        self.tick()
        if self.bmc.blind:
            return UnknownMachine("BMC does not answer")
        return Machine(power=self.bmc.power, orders=self.bmc.offered)

    def act(self, _machine: str, _action_id: str, order: Order, /) -> OrderOutcome:
        self.tick()
        return self.crash.pass_through(lambda: self._order(order))

    def outcome(self, _machine: str, _action_id: str, /) -> OrderOutcome:
        return self.bmc.knows

    def _order(self, order: Order) -> OrderOutcome:
        self.bmc.orders.append(order)
        if self.bmc.ignores > 0:
            self.bmc.ignores -= 1
        else:
            self.bmc.due.append((self.bmc.clock() + self.bmc.delay, order))
        return self.bmc.say


@dataclass
class FakeIncidentBranch:
    """The incident branch as a recorder writes it; `down` makes it unavailable."""

    events: list[Commit] = field(default_factory=list)
    down: bool = False

    def record(self, event: Commit) -> str:
        if self.down:
            raise RecordUnavailableError("the Git host is down")
        for known in self.events:
            if set(known.files) & set(event.files):
                if known.decision_id == event.decision_id:
                    return "c0ffee"
                raise AlreadyRecordedError(next(iter(event.files)), "c0ffee")
        self.events.append(event)
        return "c0ffee"


@dataclass
class IncidentBranchClient:
    """The way to the incident branch from one process, which may be killed at a push."""

    incident_branch: FakeIncidentBranch
    crash: CrashPoint

    def record(self, event: Commit) -> str:
        return self.crash.pass_through(lambda: self.incident_branch.record(event))


@dataclass
class Bot:
    """What the bot would answer about nodes: reports by node, or nothing at all while it is `down`."""

    url: str
    reports: dict[str, HeldReport] = field(default_factory=dict)
    down: bool = False
    tokens: list[str] = field(default_factory=list)


@contextmanager
def bot() -> Iterator[Bot]:
    class Answerer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held = found.reports.get(self.path.split("/")[3])
            found.tokens.append(self.headers["Authorization"])
            body = msgspec.json.encode(held) if held else b'{"error": "no report"}'
            self.send_response(503 if found.down else 200 if held else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answerer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    found = Bot(f"http://127.0.0.1:{server.server_address[1]}")
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
