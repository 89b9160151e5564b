"""The agent's HTTP client over real sockets: connections that stay, break or stall, and invalid answers."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from checks.agent.http_client import BODY_LIMIT, HttpClient, HttpError
from tests.lab.kube import certificates

OK = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers every request with the next of `answers`; empty closes the connection without a word."""

    def __init__(self, *answers: bytes, context: ssl.SSLContext | None = None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            each.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            try:
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                self._talk(connection)
            except OSError:
                connection.close()

    def _talk(self, connection: socket.socket) -> None:
        self._open.append(connection)
        while self.answers:
            request = _request(connection)
            if not request:
                break
            self.requests.append(request)
            answer = self.answers.pop(0)
            connection.sendall(answer)
            if answer == b"" or b"close" in answer or answer.startswith(b"HTTP/1.0"):
                break
        if self.answers:
            connection.close()


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(4096)
        if not part:
            return b""
        received += part
    length = int(received.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(received.partition(b"\r\n\r\n")[2]) < length:
        received += connection.recv(4096)
    return received


Start = Callable[..., tuple[Server, HttpClient]]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[tuple[Server, HttpClient]] = []

    def begin(*answers: bytes, timeout: float = 5.0) -> tuple[Server, HttpClient]:
        server = Server(*answers)
        made.append((server, HttpClient(f"http://127.0.0.1:{server.port}/bot/", None, timeout)))
        return made[-1]

    yield begin
    for server, client in made:
        client.close()
        server.close()


def test_a_request_says_where_who_and_how_long(start: Start) -> None:
    server, client = start(OK)
    assert client.post("/v1/reports", "t-1", b"body") == (202, b"{}")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[:3] == [
        b"POST /bot/v1/reports HTTP/1.1",
        b"Host: 127.0.0.1:%d" % server.port,
        b"Authorization: Bearer t-1",
    ]
    assert b"Content-Length: 4" in head
    assert body == b"body"


def test_reports_share_one_connection(start: Start) -> None:
    server, client = start(OK, OK, OK)
    assert [client.post("/", "t", b"")[0] for _ in range(3)] == [202, 202, 202]
    assert server.connections == 1


@pytest.mark.parametrize(
    "last",
    [b"HTTP/1.1 202 Ok\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.0 202 Ok\r\n\r\n"],
)
def test_a_connection_that_ends_with_its_answer_is_replaced(last: bytes, start: Start) -> None:
    server, client = start(last, OK)
    assert client.post("/", "t", b"") == (202, b"")
    assert client.post("/", "t", b"") == (202, b"{}")
    assert server.connections == 2


def test_a_connection_closed_between_two_reports_costs_no_report(start: Start) -> None:
    server, client = start(OK, b"", OK)
    assert client.post("/", "t", b"first") == (202, b"{}")
    assert client.post("/", "t", b"second") == (202, b"{}")
    assert [request[-6:] for request in server.requests] == [b"\nfirst", b"second", b"second"]


def test_a_new_connection_that_gives_no_answer_is_not_tried_again(start: Start) -> None:
    server, client = start(b"", OK)
    with pytest.raises(HttpError, match="closed without an answer"):
        client.post("/", "t", b"")
    assert server.connections == 1


def test_silence_ends_at_the_timeout_and_is_not_asked_again(start: Start) -> None:
    server, client = start(OK, b"HTTP/1.1 202", OK, timeout=1.0)
    assert client.post("/", "t", b"")[0] == 202
    with pytest.raises(HttpError, match="TimeoutError"):
        client.post("/", "t", b"")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 202, b"{}"),
        (b'HTTP/1.1 403 No\r\ncontent-LENGTH:  3\r\nX: y\r\n\r\n"n"', 403, b'"n"'),
        (b"HTTP/1.0 503 No\r\n\r\nlater", 503, b"later"),
        (b"HTTP/1.0 200 Ok\r\n\r\n" + b"x" * 9000, 200, b"x" * BODY_LIMIT),
        (b"HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n", 204, b""),
    ],
)
def test_an_answer_has_a_status_and_a_body(answer: bytes, status: int, body: bytes, start: Start) -> None:
    _, client = start(answer, OK)
    assert client.post("/", "t", b"") == (status, body)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2 close\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 999 close\r\n\r\n", "is not HTTP"),
        (b"close" + b"x" * 40_000, "does not end"),
        (b"HTTP/1.1 202 close\r\n", "closed without an answer"),
    ],
)
def test_what_is_no_answer_is_told_as_such(answer: bytes, why: str, start: Start) -> None:
    _, client = start(answer, OK)
    with pytest.raises(HttpError, match=why):
        client.post("/", "t", b"")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://[::1]:1", "http://127.0.0.1:99999", "http://a..b"]
)
def test_an_address_where_nobody_is_gives_no_traceback(url: str) -> None:
    with pytest.raises(HttpError):
        HttpClient(url, None, 1.0).post("/", "t", b"")


def test_a_certificate_is_checked_against_the_ca_file_as_it_is_now(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
        certificates.write(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ours / "server.crt", ours / "server.key")
    server = Server(OK, OK, context=context)
    ca_file = tmp_path / "ca.crt"
    ca_file.write_bytes((theirs / "ca.crt").read_bytes())
    client = HttpClient(f"https://127.0.0.1:{server.port}", ca_file, 5.0)
    with pytest.raises(HttpError, match="not trusted"):
        client.post("/", "t", b"")
    ca_file.write_bytes((ours / "ca.crt").read_bytes())
    assert client.post("/", "t", b"") == (202, b"{}")
    client.close()
    server.close()
