"""What may go wrong with a method, on purpose: the test says it beforehand, the Web API asks at each call."""

import threading
from dataclasses import dataclass, field
from typing import Literal

from tests.lab.slack.wire import Json

Kind = Literal["ratelimited", "status", "error", "slow", "reset_before", "reset_after"]


@dataclass
class Fault:
    """One planned failure of `method` (`*` = any), for the next `times` calls (None = until cleared)."""

    method: str
    kind: Kind
    times: int | None = 1
    seconds: float = 0.0
    status: int = 500
    answer: Json = field(default_factory=dict)


class Faults:
    """The plan. Every method may be called from any thread; the oldest fault that fits is used first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planned: list[Fault] = []

    def ratelimited(self, method: str, retry_after_seconds: int = 1, times: int | None = 1) -> None:
        """429 with Retry-After; the call is not carried out."""
        self._plan(Fault(method, "ratelimited", times, seconds=retry_after_seconds))

    def status(self, method: str, status: int = 503, times: int | None = 1) -> None:
        """A 5xx page of the edge, not JSON; the call is not carried out."""
        self._plan(Fault(method, "status", times, status=status))

    def error(self, method: str, error: str, times: int | None = 1, **extra: object) -> None:
        """`{"ok": false, "error": error, **extra}`; the call is not carried out."""
        self._plan(Fault(method, "error", times, answer={"ok": False, "error": error, **extra}))

    def slow(self, method: str, seconds: float, times: int | None = 1) -> None:
        """The call is carried out after waiting."""
        self._plan(Fault(method, "slow", times, seconds=seconds))

    def reset_before(self, method: str, times: int | None = 1) -> None:
        """The connection is reset; the call is not carried out."""
        self._plan(Fault(method, "reset_before", times))

    def reset_after(self, method: str, times: int | None = 1) -> None:
        """The call is carried out, then the connection is reset instead of answered."""
        self._plan(Fault(method, "reset_after", times))

    def clear(self, method: str | None = None) -> None:
        """Forget what is planned, for one method or for all."""
        with self._lock:
            self._planned = [
                fault for fault in self._planned if method is not None and fault.method != method
            ]

    def take(self, method: str) -> Fault | None:
        """The fault for a call that arrives now, used up by one."""
        with self._lock:
            for fault in self._planned:
                if fault.method not in (method, "*"):
                    continue
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self._planned.remove(fault)
                return fault
        return None

    def _plan(self, fault: Fault) -> None:
        with self._lock:
            self._planned.append(fault)
