"""Kin: which open faults a rule can relate to an event, found without looking at all the others.

A fault stands under two marks: its kind (subsystem and code), and the GPU that has it.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count

from checks.kernel.event import Event

Key = tuple[str, str, str, str]
"""Identity of a fault, `Event.key`."""

Mark = tuple[str, ...]
"""A kind (two words) or a GPU (one)."""


class Kin:
    """Keys of events by mark, each with its turn: the higher, the later it was put in."""

    def __init__(self) -> None:
        self._turns = count()
        self._marked: defaultdict[Mark, dict[Key, int]] = defaultdict(dict)

    def put(self, event: Event) -> None:
        """Take in an event, as the newest."""
        turn = next(self._turns)
        for mark in _marks(event):
            self._marked[mark][event.key] = turn

    def remove(self, event: Event) -> None:
        """Forget an event that was put in."""
        for mark in _marks(event):
            keys = self._marked[mark]
            del keys[event.key]
            if not keys:
                del self._marked[mark]

    def find(self, marks: Iterable[Mark]) -> list[Key]:
        """Return the keys under any of the marks, the newest first."""
        turns: dict[Key, int] = {}
        for mark in marks:
            turns.update(self._marked.get(mark, {}))
        return sorted(turns, key=turns.__getitem__, reverse=True)


def kind(event: Event) -> Mark:
    """Return the mark of everything that has the event's code."""
    return event.subsystem, event.code or ""


def place(event: Event) -> tuple[Mark, ...]:
    """Return the mark of everything on the event's GPU, none when it has none."""
    return () if event.gpu is None else ((event.gpu,),)


def _marks(event: Event) -> tuple[Mark, ...]:
    return kind(event), *place(event)
