"""Machines with a power state that obey an order some time after it was accepted, as real ones do."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

ON = "On"
OFF = "Off"

CHANGES = {
    "On": (ON,),
    "ForceOn": (ON,),
    "ForceOff": (OFF,),
    "GracefulShutdown": (OFF,),
    "GracefulRestart": (OFF, ON),
    "ForceRestart": (OFF, ON),
}
"""The power states that a machine goes through for each reset type of Redfish (DSP0268, ResetType)."""


@dataclass(frozen=True, slots=True)
class Delays:
    """`obey_seconds` pass from an accepted order until the power changes, `off_seconds` until it is back."""

    obey_seconds: float = 1.0
    off_seconds: float = 0.5


@dataclass(slots=True)
class Power:
    """One machine. `resets` counts how often it really lost its power."""

    state: str = ON
    resets: int = 0
    ignores: int = 0
    """So many of the next orders are accepted and have no effect."""


@dataclass(order=True, slots=True)
class Change:
    """A power state that a machine takes at `due`, in seconds of the monotonic clock."""

    due: float
    number: int
    node: str = field(compare=False)
    state: str = field(compare=False)


class Machines:
    """All machines and the changes they have ahead. A thread of its own carries them out while it runs.

    Calls `on_power(node, state)` in that thread, for each change, in order.
    """

    def __init__(self, nodes: Sequence[str], delays: Delays, on_power: Callable[[str, str], None]) -> None:
        self._machines = {node: Power() for node in nodes}
        self._delays = delays
        self._on_power = on_power
        self._changes: list[Change] = []
        self._numbers = itertools.count()
        self._wake = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Carry out changes; those that fell due while stopped come first."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="machines", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Carry out nothing more until the next `start`."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None

    def state(self, node: str) -> str:
        with self._wake:
            return self._machines[node].state

    def resets(self, node: str) -> int:
        with self._wake:
            return self._machines[node].resets

    def ignore_next_order(self, node: str) -> None:
        with self._wake:
            self._machines[node].ignores += 1

    def order(self, node: str, reset_type: str) -> None:
        """Accept an order of a type in `CHANGES`. A restart that overlaps another is one power cycle."""
        with self._wake:
            machine = self._machines[node]
            if machine.ignores:
                machine.ignores -= 1
                return
            due = time.monotonic() + self._delays.obey_seconds
            for state in CHANGES[reset_type]:
                heapq.heappush(self._changes, Change(due, next(self._numbers), node, state))
                due += self._delays.off_seconds
            self._wake.notify()

    def _run(self) -> None:
        while (change := self._next()) is not None:
            self._on_power(change.node, change.state)

    def _next(self) -> Change | None:
        """Wait for the next change that makes a difference, make it, and return it; None to stop."""
        with self._wake:
            while not self._stopping:
                left = self._changes[0].due - time.monotonic() if self._changes else None
                if left is not None and left <= 0:
                    change = heapq.heappop(self._changes)
                    if self._apply(change):
                        return change
                else:
                    self._wake.wait(left)
        return None

    def _apply(self, change: Change) -> bool:
        machine = self._machines[change.node]
        if machine.state == change.state:
            return False
        machine.state = change.state
        machine.resets += change.state == OFF
        return True
