"""What stands between the product and the BMCs: relays HTTP, counts reset POSTs, breaks things on demand.

It listens on one port for its whole life, also across `down()` and `up()`, so that addresses written into a
configuration stay true.
"""

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.lab.ports import free_ports

RESET_SUFFIX = "/Actions/ComputerSystem.Reset"
HOP_HEADERS = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
UPSTREAM_SECONDS = 30.0


class Fault(StrEnum):
    """What the proxy does to a request for one machine instead of relaying it plainly."""

    LOSE = "lose"  # relay it, then close the connection without an answer; once
    FAIL = "fail"  # relay it, then answer 500 whatever came back; once
    REFUSE = "refuse"  # answer 409 without relaying, until cleared
    HANG = "hang"  # wait first, then relay, even if the client has left; until cleared


@dataclass(frozen=True, slots=True)
class ResetPost:
    """One reset that arrived here, whatever became of it."""

    node: str
    reset_type: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault that waits for the next request of `method` for a machine."""

    fault: Fault
    method: str
    seconds: float = 0.0


class BmcProxy:
    """An HTTP/1.1 proxy in front of one upstream; `node_of` tells whose machine a path is about."""

    def __init__(self, node_of: Callable[[str], str | None]) -> None:
        self.node_of = node_of
        self.upstream: tuple[str, int] | None = None
        self.posts: list[ResetPost] = []
        self._troubles: dict[str, Trouble] = {}
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server: Listener | None = None
        self.port = free_ports()[0]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Listen (again). Does nothing when already listening."""
        if self._server is None:
            self._released.clear()
            self._server = Listener(self)

    def down(self) -> None:
        """Refuse connections, cut those that are open, and let hanging requests go without relaying them."""
        if self._server is not None:
            self._released.set()
            self._server.cut()
            self._server = None

    def trouble(self, node: str, fault: Fault, *, method: str = "POST", seconds: float = 0.0) -> None:
        with self._lock:
            self._troubles[node] = Trouble(fault, method, seconds)

    def clear(self, node: str) -> None:
        with self._lock:
            self._troubles.pop(node, None)

    def take(self, node: str | None, method: str) -> Trouble | None:
        """Return the trouble that this request meets; those that happen once are used up by it."""
        with self._lock:
            found = self._troubles.get(node or "")
            if found is None or found.method != method:
                return None
            if found.fault in (Fault.LOSE, Fault.FAIL):
                del self._troubles[node or ""]
            return found

    def record(self, post: ResetPost) -> None:
        with self._lock:
            self.posts.append(post)

    def hang(self, seconds: float) -> bool:
        """Wait; returns whether the proxy was cut meanwhile."""
        return self._released.wait(seconds)


class Listener(ThreadingHTTPServer):
    """The listening socket, its thread and its open connections."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: BmcProxy) -> None:
        self.proxy = proxy
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", proxy.port), Exchange)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.2,), name="bmc-proxy", daemon=True)
        self._thread.start()

    def cut(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
        for each in tuple(self.open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is not an event here."""


class Exchange(BaseHTTPRequestHandler):
    """One client connection."""

    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Listener

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library names it
        """The posts that matter are in `BmcProxy.posts`."""

    def do_GET(self) -> None:
        self._exchange()

    def do_POST(self) -> None:
        self._exchange()

    def do_PATCH(self) -> None:
        self._exchange()

    def _exchange(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        node = proxy.node_of(self.path)
        self._record(node, body)
        trouble = proxy.take(node, self.command)
        fault = trouble.fault if trouble else None
        if trouble and fault is Fault.HANG and proxy.hang(trouble.seconds):
            self.close_connection = True
            return
        if fault is Fault.REFUSE:
            self._answer(409, [], _error("The management controller refuses this request for now."))
            return
        relayed = self._relay(body)
        if fault is Fault.LOSE or relayed is None:
            self.close_connection = True
        elif fault is Fault.FAIL:
            self._answer(500, [], _error("Internal error of the management controller."))
        else:
            self._answer(*relayed)

    def _record(self, node: str | None, body: bytes) -> None:
        if node and self.command == "POST" and self.path.endswith(RESET_SUFFIX):
            try:
                reset_type = str(json.loads(body).get("ResetType"))
            except (ValueError, AttributeError):
                reset_type = ""
            self.server.proxy.record(ResetPost(node, reset_type))

    def _relay(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes] | None:
        upstream = self.server.proxy.upstream
        if upstream is None:
            return None
        link = HTTPConnection(*upstream, timeout=UPSTREAM_SECONDS)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        try:
            link.request(self.command, self.path, body=body or None, headers=headers)
            response: HTTPResponse = link.getresponse()
            kept = [(n, v) for n, v in response.getheaders() if n.lower() not in HOP_HEADERS]
            return response.status, kept, response.read()
        except (OSError, HTTPException):
            return None
        finally:
            link.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _error(message: str) -> bytes:
    return json.dumps({"error": {"code": "Base.1.12.GeneralError", "message": message}}).encode()
