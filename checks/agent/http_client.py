"""HTTP client: as much of HTTP/1.1 as the agent needs, over one connection that stays open between reports.

The standard library's client imports a mail parser, 1.2 MB on every node. A new TLS connection for each
report would cost more than everything else that an idle agent does.
"""

import re
import socket
import ssl
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

HEAD_LIMIT = 16_384
"""Bytes of an answer's head that are read."""

BODY_LIMIT = 4096
"""Bytes of an answer's body that are read; the bot's have fewer than 200."""


class HttpError(Exception):
    """There was no answer; the text says why. Try again later."""


class HttpClient:
    """A connection to `url`, opened when needed. `ca_file` is read for each one, because it may be renewed.

    `timeout_seconds` bounds each step: connecting, sending, each wait for more of the answer.
    """

    def __init__(self, url: str, ca_file: Path | None, timeout_seconds: float) -> None:
        self._address = urlsplit(url)
        self._ca_file = ca_file
        self._timeout = timeout_seconds
        self._socket: socket.socket | None = None

    def post(self, path: str, token: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer to `body`; raises WireError when there is none.

        A connection that the other side closed in the meantime is replaced, and the request sent once more.
        """
        head = (
            f"POST {self._address.path.rstrip('/')}{path} HTTP/1.1\r\nHost: {_host(self._address)}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        request = head.encode("latin-1", "replace") + body
        try:
            if self._socket is not None and (answer := self._again(self._socket, request)) is not None:
                return answer
            self._socket = self._connect()
            return self._exchange(self._socket, request)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise HttpError(
                f"its certificate is not trusted ({error.verify_message}); check ca_file"
            ) from error
        except (OSError, ValueError) as error:
            self.close()
            raise HttpError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close the connection; the next request makes another."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _again(self, connection: socket.socket, request: bytes) -> tuple[int, bytes] | None:
        try:
            return self._exchange(connection, request)
        except TimeoutError:
            raise
        except OSError:
            self.close()
            return None

    def _connect(self) -> socket.socket:
        host = self._address.hostname or ""
        secure = self._address.scheme == "https"
        context = ssl.create_default_context(cafile=self._ca_file) if secure else None
        plain = socket.create_connection((host, self._address.port or (443 if secure else 80)), self._timeout)
        if context is None:
            return plain
        try:
            return context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    def _exchange(self, connection: socket.socket, request: bytes) -> tuple[int, bytes]:
        connection.sendall(request)
        status = 100
        received = b""
        while status < 200:
            head, received = _head(connection, received)
            status = _status(head)
        body, whole = _body(connection, head, received)
        if not whole or not _stays_open(head):
            self.close()
        return status, body


def _host(address: SplitResult) -> str:
    return address.netloc.rpartition("@")[2]


def _head(connection: socket.socket, received: bytes) -> tuple[bytes, bytes]:
    while b"\r\n\r\n" not in received:
        part = connection.recv(HEAD_LIMIT)
        if not part:
            raise ConnectionResetError("the connection was closed without an answer")
        received += part
        if len(received) > HEAD_LIMIT + BODY_LIMIT:
            raise ValueError("the answer does not come from a bot: its head does not end")
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _status(head: bytes) -> int:
    match = _STATUS.match(head)
    if match is None:
        raise ValueError(f"the answer is not HTTP: {head[:40]!r}")
    return int(match[1])


def _body(connection: socket.socket, head: bytes, received: bytes) -> tuple[bytes, bool]:
    """Return what is kept of the body, and whether all of it has been read."""
    length = _LENGTH.search(head)
    wanted = min(int(length[1]), BODY_LIMIT) if length else BODY_LIMIT
    while len(received) < wanted and (part := connection.recv(BODY_LIMIT)):
        received += part
    return received[:wanted], length is not None and len(received) == int(length[1])


def _stays_open(head: bytes) -> bool:
    return head.startswith(b"HTTP/1.1") and _CLOSE.search(head) is None


_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})\b")
_LENGTH = re.compile(rb"^content-length: *([0-9]{1,9}) *\r?$", re.IGNORECASE | re.MULTILINE)
_CLOSE = re.compile(rb"^connection: *close *\r?$", re.IGNORECASE | re.MULTILINE)
