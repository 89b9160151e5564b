"""Questions to the network, each in a thread: a look-up can be given no deadline, and nobody can end one."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping


class Asked:
    """Questions that were asked. One under way is not asked again, so that threads never pile up."""

    def __init__(self) -> None:
        self._under_way: dict[str, _Question] = {}

    def answers(self, questions: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, str]:
        """Ask all at once; return for each why it was not answered in `seconds`, empty when it was.

        A question fails by raising OSError, ValueError or OverflowError. One that is still under way has
        failed, and is not waited for.
        """
        late = {name for name, each in self._under_way.items() if each.is_alive()}
        began = {name: _Question(ask) for name, ask in questions.items() if name not in late}
        for each in began.values():
            each.start()
        deadline = time.monotonic() + seconds
        for each in began.values():
            each.join(max(0.0, deadline - time.monotonic()))
        self._under_way = {name: each for name, each in (self._under_way | began).items() if each.is_alive()}
        silent = f"no answer in {seconds:g} s"
        return {name: silent if name in self._under_way else began[name].trouble for name in questions}


class _Question(threading.Thread):
    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__(name="probe", daemon=True)
        self._ask = ask
        self.trouble = "the question could not be asked"

    def run(self) -> None:
        try:
            self._ask()
            self.trouble = ""
        except (OSError, ValueError, OverflowError) as error:
            self.trouble = str(error) or type(error).__name__


def resolve(name: str) -> None:
    """Ask the resolver for the name's addresses, as every program does that wants to connect there."""
    socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)


def connect(host: str, port: int, seconds: float) -> None:
    """Open a connection and close it."""
    socket.create_connection((host, port), timeout=seconds).close()


def greet(host: str, port: int, seconds: float) -> None:
    """Open a connection and speak TLS on it, so that a server which merely has its port open is found out.

    Nothing is sent over it, so it does not matter who answers: the certificate is not verified.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), timeout=seconds) as plain, context.wrap_socket(plain):
        pass


def is_address(host: str) -> bool:
    """Whether the host is an address, which needs no look-up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False
