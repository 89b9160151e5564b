"""Probes of the network, each in a thread: a name look-up takes no deadline, and nothing can end one."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping


class NetProbe:
    """Runs probes with a deadline. One that still runs is not started again, so threads never pile up."""

    def __init__(self) -> None:
        self._running: dict[str, _Probe] = {}

    def run_all(self, probes: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, str]:
        """Run all at once; return for each why it did not succeed in `seconds`, empty when it did.

        A probe fails by raising OSError, ValueError or OverflowError. One that still runs from an earlier
        call has failed, and nothing waits for it.
        """
        late = {name for name, each in self._running.items() if each.is_alive()}
        began = {name: _Probe(probe) for name, probe in probes.items() if name not in late}
        for each in began.values():
            each.start()
        deadline = time.monotonic() + seconds
        for each in began.values():
            each.join(max(0.0, deadline - time.monotonic()))
        self._running = {name: each for name, each in (self._running | began).items() if each.is_alive()}
        silent = f"no answer in {seconds:g} s"
        return {name: silent if name in self._running else began[name].error for name in probes}


class _Probe(threading.Thread):
    def __init__(self, probe: Callable[[], object]) -> None:
        super().__init__(name="probe", daemon=True)
        self._run_probe = probe
        self.error = "the probe did not run"

    def run(self) -> None:
        try:
            self._run_probe()
            self.error = ""
        except (OSError, ValueError, OverflowError) as error:
            self.error = str(error) or type(error).__name__


def resolve(name: str) -> None:
    """Resolve the name the way every program does that connects there."""
    socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)


def connect(host: str, port: int, seconds: float) -> None:
    """Open a connection and close it."""
    socket.create_connection((host, port), timeout=seconds).close()


def greet(host: str, port: int, seconds: float) -> None:
    """Open a connection and complete a TLS handshake: an open port alone does not prove that a server works.

    Nothing is sent over the connection, so the certificate is not verified.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), timeout=seconds) as plain, context.wrap_socket(plain):
        pass


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, which needs no look-up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False
