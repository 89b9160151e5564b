"""Faults that a test arms per route: each strikes a number of matching requests, then is spent."""

import re
import threading
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "done-then-502",  # processed, and the answer is a 502
    "reply-lost",  # processed, and the connection closes without an answer
    "limited",  # 403 with Retry-After, not processed
    "not-there-yet",  # 404 of something that was just written
    "not-fast-forward",  # 422 without any rival
    "expired",  # 401, as of a token that ran out
    "forbidden",  # 403, as of a token without the right
    "unavailable",  # 503, not processed
    "slow",  # processed after `seconds`
    "garbled",  # 200 with a body that is not JSON
]


@dataclass
class Fault:
    """`path` is searched in the request's path; `seconds` is Retry-After or the delay."""

    kind: Kind
    method: str
    path: str
    times: int
    seconds: float
    after_write: bool

    def matches(self, method: str, path: str) -> bool:
        return self.times > 0 and self.method in (method, "*") and re.search(self.path, path) is not None


@dataclass
class Faults:
    armed: list[Fault] = field(default_factory=list)
    struck: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self, kind: Kind, method: str = "*", path: str = "/repos/", *, times: int = 1, seconds: float = 1.0
    ) -> None:
        """Arm a fault. `not-there-yet` strikes only once something has been written since."""
        with self._lock:
            self.armed.append(Fault(kind, method, path, times, seconds, kind == "not-there-yet"))

    def clear(self) -> None:
        with self._lock:
            self.armed.clear()

    def strike(self, method: str, path: str) -> Fault | None:
        """Return the fault that this request meets, and use it up by one."""
        with self._lock:
            for fault in self.armed:
                if not fault.after_write and fault.matches(method, path):
                    fault.times -= 1
                    self.struck += 1
                    return fault
        return None

    def wrote(self) -> None:
        """Say that a write went through."""
        with self._lock:
            for fault in self.armed:
                fault.after_write = False
