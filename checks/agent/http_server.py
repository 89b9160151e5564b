"""HTTP server: a few pages over HTTP/1.1, one request at a time, for probes and Prometheus.

`http.server` would import http.client and its mail parser, 2 MB on every node.
"""

import logging
import socket
from collections.abc import Callable, Mapping
from functools import partial

from checks.agent.runtime import Runtime

REQUEST_LIMIT = 8192
"""Bytes of a request that are read; more is refused."""

REQUEST_SECONDS = 2.0
"""How long one client may take, so that it does not hold up the others for long."""

Page = Callable[[], tuple[int, str, bytes]]
"""Gives status, content type and body."""

log = logging.getLogger("checks.agent.http_server")


class HttpServer:
    """Serves `pages` by path at `listen` (`host:port`, empty for nowhere) in a thread of its own.

    An address that is not available is logged once and costs only the pages.
    """

    def __init__(self, listen: str, pages: Mapping[str, Page], runtime: Runtime) -> None:
        self._listen = listen
        self._pages = pages
        self._runtime = runtime
        self._socket: socket.socket | None = None
        self.port: int | None = None

    def start(self) -> None:
        """Start to serve."""
        if not self._listen:
            return
        host, _, port = self._listen.rpartition(":")
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=8)
        except (OSError, OverflowError) as error:
            log.warning("health pages cannot be served at %s: %s", self._listen, error)
            return
        self.port = self._socket.getsockname()[1]
        self._runtime.start_thread("pages", partial(self._run, self._socket))

    def stop(self) -> None:
        """Release the address; a request that is being served is cut off."""
        if self._socket is not None:
            self._socket.close()

    def _run(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return
                continue
            with connection:
                try:
                    connection.settimeout(REQUEST_SECONDS)
                    connection.sendall(self._answer(_request(connection)))
                except OSError:
                    continue

    def _answer(self, request: bytes) -> bytes:
        method, path = _target(request)
        page = self._pages.get(path)
        if page is None:
            return _response(404, "text/plain", f"only {' and '.join(self._pages)} are here\n".encode())
        if method not in ("GET", "HEAD"):
            return _response(405, "text/plain", b"only GET is understood\n")
        status, kind, body = page()
        answer = _response(status, kind, body)
        return answer if method == "GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received and len(received) < REQUEST_LIMIT:
        part = connection.recv(REQUEST_LIMIT)
        if not part:
            break
        received += part
    return received


def _target(request: bytes) -> tuple[str, str]:
    words = request.partition(b"\r\n")[0].decode("latin-1").split(" ")
    return (words[0], words[1].partition("?")[0]) if len(words) == 3 else ("", "")


def _response(status: int, kind: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + body


_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
