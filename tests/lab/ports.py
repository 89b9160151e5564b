"""Free ports for servers that have to know theirs before they start."""

import atexit
import random
import socket
from contextlib import ExitStack

FIRST, LAST = 20_000, 32_000
"""Below the ports that Linux gives to outgoing connections (ip_local_port_range: from 32,768)."""

_taken = ExitStack()
atexit.register(_taken.close)


def free_ports(count: int = 1) -> range:
    """Return so many free TCP ports in a row, which no other process of the tests gets while this one lives.

    Between here and the server's own bind a port belongs to nobody. So each is marked as taken by holding the
    UDP port of the same number, which the system gives back when this process ends, however it ends.

    Raises:
        RuntimeError: there are none.
    """
    for _ in range(1_000):
        first = random.randrange(FIRST, LAST - count)
        ports = range(first, first + count)
        with ExitStack() as held:
            try:
                for port in ports:
                    marked = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                    marked.bind(("127.0.0.1", port))
                    socket.create_server(("", port)).close()
            except OSError:
                continue
            _taken.push(held.pop_all())
            return ports
    raise RuntimeError(f"no {count} free ports in a row between {FIRST} and {LAST}")
