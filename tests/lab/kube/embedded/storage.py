"""Objects with one revision counter and the history that watches and old lists are served from.

Stored dicts are never changed: a write stores a new one. All calls come from the server's thread.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.errors import Obj, expired

if TYPE_CHECKING:
    from collections.abc import Callable

HISTORY = 20_000
"""Events kept; a watch from before them is told 410, as by a compacted etcd."""

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped objects."""


@dataclass(slots=True)
class Event:
    """One change of one object; previous is None for an object that was not there."""

    revision: int
    type: str
    table: str
    object: Obj
    previous: Obj | None
    encoded: bytes = b""


def key_of(obj: Obj) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Store:
    """Tables of objects; listeners hear each change after it is stored, in order, even if they write."""

    def __init__(self) -> None:
        self.revision = 1
        self.compacted = 0
        self.watched_from = 0
        self.listeners: list[Callable[[Event], None]] = []
        self._tables: dict[str, dict[Key, Obj]] = {}
        self._history: deque[Event] = deque()
        self._untold: deque[Event] = deque()
        self._telling = False

    def get(self, table: str, namespace: str, name: str) -> Obj | None:
        return self._tables.get(table, {}).get((namespace, name))

    def all(self, table: str, namespace: str = "") -> list[Obj]:
        """The objects of one table in key order; of every namespace if none is named."""
        rows = self._tables.get(table, {})
        return [rows[key] for key in sorted(rows) if not namespace or key[0] == namespace]

    def at(self, table: str, revision: int) -> dict[Key, Obj]:
        """The table as it was at a revision.

        Raises:
            ApiError: 410, the history no longer reaches back so far.
        """
        rows = dict(self._tables.get(table, {}))
        for event in reversed(self.since(revision)):
            if event.table != table:
                continue
            if event.previous is None:
                rows.pop(key_of(event.object), None)
            else:
                rows[key_of(event.object)] = event.previous
        return rows

    def since(self, revision: int) -> list[Event]:
        """The changes after a revision, oldest first.

        Raises:
            ApiError: 410, the history no longer reaches back so far.
        """
        if revision < self.compacted:
            raise expired(f"too old resource version: {revision} ({self.compacted})")
        newer: list[Event] = []
        for event in reversed(self._history):
            if event.revision <= revision:
                break
            newer.append(event)
        return newer[::-1]

    def changes(self, revision: int) -> list[Event]:
        """What a watch that knows this revision has to be told.

        Raises:
            ApiError: 410, the revision is older than the last start of the server or the history.
        """
        oldest = max(self.watched_from, self.compacted)
        if revision < oldest:
            raise expired(f"too old resource version: {revision} ({oldest})")
        return self.since(revision)

    def begin_watches(self) -> None:
        """Serve no watch from before now: the real watch cache is empty after a start."""
        self.watched_from = self.revision

    def put(self, table: str, obj: Obj) -> Obj:
        """Store a new version; returns it with its resourceVersion."""
        self.revision += 1
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        rows = self._tables.setdefault(table, {})
        previous = rows.get(key_of(stamped))
        rows[key_of(stamped)] = stamped
        self._tell(Event(self.revision, "MODIFIED" if previous else "ADDED", table, stamped, previous))
        return stamped

    def remove(self, table: str, obj: Obj) -> Obj:
        """Delete an object; returns its last state with the revision of the deletion."""
        self.revision += 1
        previous = self._tables[table].pop(key_of(obj))
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        self._tell(Event(self.revision, "DELETED", table, stamped, previous))
        return stamped

    def compact(self) -> None:
        """Forget the history, so that older revisions are answered with 410."""
        self._history.clear()
        self.compacted = self.revision

    def _tell(self, event: Event) -> None:
        self._history.append(event)
        if len(self._history) > HISTORY:
            self.compacted = self._history.popleft().revision
        self._untold.append(event)
        if self._telling:
            return
        self._telling = True
        try:
            while self._untold:
                told = self._untold.popleft()
                for listener in list(self.listeners):
                    listener(told)
        finally:
            self._telling = False
