"""Webhooks: signed deliveries, one try each, as GitHub sends them. A log keeps what was sent."""

import hashlib
import hmac
import json
import queue
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.lab.github.store import ZERO, Store


@dataclass(frozen=True)
class Hook:
    url: str
    secret: str
    events: tuple[str, ...]


@dataclass(frozen=True)
class Delivery:
    """One delivery. `status` is what the receiver answered, 0 if it could not be reached."""

    id: str
    event: str
    url: str
    body: bytes
    status: int


@dataclass
class Hooks:
    configured: list[Hook] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    _waiting: "queue.Queue[tuple[Hook, str, str, bytes] | None]" = field(default_factory=queue.Queue)
    _thread: threading.Thread | None = None

    def add(self, url: str, secret: str, events: Iterable[str] = ("push", "pull_request")) -> None:
        hook = Hook(url, secret, tuple(events))
        self.configured.append(hook)
        self._put(hook, "ping", {"zen": "Keep it logically awesome.", "hook_id": len(self.configured)})

    def emit(self, event: str, payload: dict[str, Any]) -> None:
        for hook in self.configured:
            if event in hook.events:
                self._put(hook, event, payload)

    def push(
        self, store: Store, repository: str, ref: str, change: tuple[str | None, str | None], pusher: str
    ) -> None:
        if not any("push" in hook.events for hook in self.configured):
            return
        old, new = change
        span = () if new is None else ((f"{old}..{new}",) if old else (new, "-20"))
        shas = store.git("log", "--format=%H", "--reverse", *span).split() if span else []
        payload = {
            "ref": ref,
            "before": old or ZERO,
            "after": new or ZERO,
            "created": old is None,
            "deleted": new is None,
            "forced": bool(old and new and not store.is_ancestor(old, new)),
            "repository": {"full_name": repository},
            "pusher": {"name": pusher},
            "sender": {"login": pusher},
            "commits": [_changed(store, sha) for sha in shas],
        }
        self.emit("push", payload)

    def redeliver(self, delivery: Delivery) -> None:
        """Send the same delivery again under its own id, as the button on GitHub's page does."""
        hook = next(hook for hook in self.configured if hook.url == delivery.url)
        self._queue((hook, delivery.event, delivery.id, delivery.body))

    def settle(self) -> None:
        """Return when everything that was due has been sent."""
        self._waiting.join()

    def stop(self) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _put(self, hook: Hook, event: str, payload: dict[str, Any]) -> None:
        self._queue((hook, event, str(uuid.uuid4()), json.dumps(payload).encode()))

    def _queue(self, due: tuple[Hook, str, str, bytes]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="github-hooks", daemon=True)
            self._thread.start()
        self._waiting.put(due)

    def _send_all(self) -> None:
        while (due := self._waiting.get()) is not None:
            self.deliveries.append(_send(*due))
            self._waiting.task_done()
        self._waiting.task_done()


def signature(secret: str, raw: bytes) -> str:
    return "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()


def _send(hook: Hook, event: str, delivery: str, raw: bytes) -> Delivery:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/lab",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": signature(hook.secret, raw),
    }
    try:
        status = httpx.post(hook.url, content=raw, headers=headers, timeout=10, trust_env=False).status_code
    except httpx.HTTPError:
        status = 0
    return Delivery(delivery, event, hook.url, raw, status)


def _changed(store: Store, sha: str) -> dict[str, Any]:
    commit = store.commit(sha)
    lines = store.git("diff-tree", "-r", "--root", "--no-commit-id", "--name-status", "--no-renames", sha)
    named = [line.split("\t", 1) for line in lines.splitlines()]
    return {
        "id": sha,
        "message": commit.message,
        "author": commit.author,
        "committer": commit.committer,
        "added": [path for kind, path in named if kind == "A"],
        "removed": [path for kind, path in named if kind == "D"],
        "modified": [path for kind, path in named if kind not in ("A", "D")],
    }
