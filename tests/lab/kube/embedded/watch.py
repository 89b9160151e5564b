"""WATCH: from a revision on, one JSON line an event, with bookmarks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from tests.lab.kube.embedded.errors import ApiError, Obj
from tests.lab.kube.embedded.listing import selected_by

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from tests.lab.kube.embedded.selectors import Predicate
    from tests.lab.kube.embedded.state import Request, State
    from tests.lab.kube.embedded.storage import Event

BOOKMARK_SECONDS = 60.0
"""kube-apiserver sends one about every minute, and one shortly before the watch's end."""
LONGEST_SECONDS = 1800.0
"""Without timeoutSeconds; the real server takes a random time of at least 30 min."""


@dataclass(slots=True)
class Watcher:
    """One open watch: what it selects and what it has not yet sent."""

    table: str
    namespace: str
    selected: Predicate
    waiting: list[Event] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, event: Event) -> None:
        """Listener of the store."""
        if event.table == self.table:
            self.waiting.append(event)
            self.arrived.set()

    def line(self, event: Event) -> bytes | None:
        """What this watch sends for a change: an object that leaves the selection counts as deleted."""
        if self.namespace and event.object["metadata"].get("namespace") != self.namespace:
            return None
        before = event.previous is not None and self.selected(event.previous)
        after = event.type != "DELETED" and self.selected(event.object)
        if not before and not after:
            return None
        kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
        if kind == event.type:
            event.encoded = event.encoded or _line(kind, event.object)
            return event.encoded
        return _line(kind, event.object)


def _line(kind: str, obj: Obj) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


async def watch(state: State, request: Request) -> AsyncGenerator[bytes]:
    """The lines of one watch, until its timeout.

    A revision that is too old, or of the future, is answered by an ERROR event, as by the real watch cache.
    """
    watcher = Watcher(request.resource.table, request.namespace, selected_by(request))
    state.store.listeners.append(watcher.hear)
    try:
        try:
            first = list(_beginning(state, request, watcher))
        except ApiError as refused:
            yield _line("ERROR", refused.status())
            return
        for line in first:
            yield line
        seconds = float(request.query.get("timeoutSeconds") or 0) or LONGEST_SECONDS
        async for line in _following(state, request, watcher, seconds):
            yield line
    finally:
        state.store.listeners.remove(watcher.hear)


def _beginning(state: State, request: Request, watcher: Watcher) -> list[bytes]:
    since = request.query.get("resourceVersion", "")
    if since not in ("", "0"):
        return [line for event in state.store.changes(int(since)) if event.table == watcher.table
                and (line := watcher.line(event))]  # fmt: skip
    rows = [obj for obj in state.store.all(watcher.table, watcher.namespace) if watcher.selected(obj)]
    return [_line("ADDED", obj) for obj in rows]


async def _following(
    state: State, request: Request, watcher: Watcher, seconds: float
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    bookmarks = request.query.get("allowWatchBookmarks") in ("true", "1")
    marked = min(loop.time() + BOOKMARK_SECONDS, max(ends - 2.0, loop.time() + 1.0))
    while (now := loop.time()) < ends:
        try:
            async with asyncio.timeout_at(min(ends, marked) if bookmarks else ends):
                await watcher.arrived.wait()
        except TimeoutError:
            if bookmarks and loop.time() >= marked:
                yield _bookmark(state, request)
                marked = now + BOOKMARK_SECONDS
            continue
        watcher.arrived.clear()
        events, watcher.waiting = watcher.waiting, []
        lines = b"".join(line for event in events if (line := watcher.line(event)))
        if lines:
            yield lines


def _bookmark(state: State, request: Request) -> bytes:
    head = {"kind": request.resource.kind, "apiVersion": request.resource.api_version}
    return _line("BOOKMARK", {**head, "metadata": {"resourceVersion": str(state.store.revision)}})
