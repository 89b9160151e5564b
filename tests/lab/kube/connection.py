"""The connection between our programs and Kubernetes, made slow and unreliable.

A TCP relay in front of either back end: each piece of data waits for a random time, and now and then the
connection breaks, before a request has arrived or before its answer has.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress
from typing import Self

PIECE_BYTES = 65_536


class UnreliableConnection:
    """Relays to `port` of 127.0.0.1. `slowest_seconds` is the longest wait of a piece of data.

    One piece in `cut_one_in` is lost and its connection is cut.
    """

    def __init__(self, port: int, *, seed: int, slowest_seconds: float, cut_one_in: int) -> None:
        self.cuts = 0
        self._port = port
        self._slowest, self._share = slowest_seconds, 1 / cut_one_in
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        threading.Thread(target=self._accept, name="connection", daemon=True).start()

    def stop(self) -> None:
        """Refuse new connections and cut those that are open."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            left = tuple(self._open)
        for each in left:
            self._cut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._port), 5.0)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._relay, args=(source, target), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                wait, is_lost = self._draw()
                time.sleep(wait)
                if is_lost:
                    break
                target.sendall(piece)
        for each in (source, target):
            self._cut(each)

    def _draw(self) -> tuple[float, bool]:
        with self._lock:
            is_lost = self._random.random() < self._share
            self.cuts += is_lost
            return self._random.uniform(0.0, self._slowest), is_lost

    def _cut(self, each: socket.socket) -> None:
        """Close one end; the first of its two relays to get here does, the other finds it closed."""
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
        with self._lock:
            self._open.discard(each)
