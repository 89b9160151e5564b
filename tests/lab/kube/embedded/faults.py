"""Faults of the server itself, switched on by a test: throttling, errors, tokens of any audience."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from tests.lab.kube.embedded.errors import status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

THROTTLED = "Too many requests, please try again later.\n"
"""What API priority and fairness answers: plain text and no Status, so it has no cause either."""
TIMED_OUT = "Timeout: request did not complete within requested timeout - context deadline exceeded"
SHUTTING_DOWN = "apiserver is shutting down"


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` requests that match; a name that is empty matches any."""

    method: str
    path: str
    """Beginning of the path."""
    user: str
    times: int
    answer: Callable[[], web.Response]
    carried_out: bool = False
    """Whether the request has its effect before the answer is replaced."""

    def matches(self, method: str, path: str, user: str) -> bool:
        return self.method in ("", method) and path.startswith(self.path) and self.user in ("", user)


class Faults:
    """The faults of one server. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.audience_unaware = False
        """Whether TokenReview takes a token of any audience and names none, as an authentication webhook does
        that does not know about audiences. Its client has to notice."""
        self._armed: list[Fault] = []
        self._lock = threading.Lock()

    def throttle(
        self, *, method: str = "", path: str = "", user: str = "", times: int = 1, retry_after: int = 1
    ) -> None:
        """Answer 429 with Retry-After in seconds, before anything is done."""

        def answer() -> web.Response:
            return web.Response(status=429, text=THROTTLED, headers={"Retry-After": str(retry_after)})

        self._arm(Fault(method, path, user, times, answer))

    def fail(
        self, *, method: str = "", path: str = "", user: str = "", times: int = 1, carried_out: bool = False
    ) -> None:
        """Answer 504 to a request that was carried out all the same, else 503 to one that was not."""
        code, reason, message = (504, "Timeout", TIMED_OUT) if carried_out else (503, "", SHUTTING_DOWN)

        def answer() -> web.Response:
            body = msgspec.json.encode(status("Failure", message, reason, None, code))
            return web.Response(status=code, body=body, content_type="application/json")

        self._arm(Fault(method, path, user, times, answer, carried_out))

    def clear(self) -> None:
        """Behave well again."""
        self.audience_unaware = False
        with self._lock:
            self._armed.clear()

    @property
    def left(self) -> int:
        """How many requests will still meet a fault."""
        with self._lock:
            return sum(each.times for each in self._armed)

    async def around(
        self, method: str, path: str, user: str, respond: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Respond, unless a fault is due: then in its way."""
        fault = self._take(method, path, user)
        if fault is None:
            return await respond()
        if fault.carried_out:
            await respond()
        return fault.answer()

    def _arm(self, fault: Fault) -> None:
        with self._lock:
            self._armed.append(fault)

    def _take(self, method: str, path: str, user: str) -> Fault | None:
        with self._lock:
            found = next((each for each in self._armed if each.matches(method, path, user)), None)
            if found is not None:
                found.times -= 1
                if found.times <= 0:
                    self._armed.remove(found)
            return found
