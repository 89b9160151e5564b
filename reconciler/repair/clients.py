"""Every way in and out of the reconciler in one value, and a memory that keeps logs short."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.providers.machine import Provider
from reconciler.repair.reports import NodeReports
from reconciler.source.recording import Recorder


@dataclass(frozen=True, slots=True)
class RepairClients:
    """Every way in and out. `machines` is asked for each pass, because its password may have changed."""

    reader: KubernetesReader
    writer: KubernetesWriter
    reports: NodeReports
    recorder: Recorder
    machines: Callable[[], Provider]
    namespace: str


@dataclass(slots=True)
class LogOnce:
    """What was said last about each thing, so that a log says each thing once."""

    last: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_new(self, about: str, text: str) -> bool:
        """Whether `text` differs from what was said last about the same thing."""
        with self.lock:
            new = self.last.get(about, "") != text
            self.last[about] = text
        return new
