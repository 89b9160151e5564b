"""Every way in and out of the reconciler in one value, and a memory that keeps logs short."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reconciler.act import Actor
from reconciler.observe import Observer
from reconciler.recorder import Recorder
from reconciler.repair.providers.machine import Provider
from reconciler.reports import Reports


@dataclass(frozen=True, slots=True)
class Doors:
    """Every way in and out. `machines` is asked for each pass, because its password may have changed."""

    observer: Observer
    actor: Actor
    reports: Reports
    recorder: Recorder
    machines: Callable[[], Provider]
    namespace: str


@dataclass(slots=True)
class Told:
    """What was said last about each thing, so that a log says each thing once."""

    last: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_new(self, about: str, text: str) -> bool:
        """Whether `text` differs from what was said last about the same thing."""
        with self.lock:
            new = self.last.get(about, "") != text
            self.last[about] = text
        return new
