"""Self metrics: what the agent records about itself, and the snapshot that its health pages show."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from checks.agent.health import Health
from checks.finding import Finding

STATM = Path("/proc/self/statm")
"""The agent's own memory in pages. Not under the root, which is the node's."""


class SelfMetrics:
    """`clock` gives seconds since boot. The reading and the reporting thread write, the pages read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began = self._step_at = clock()
        self._accepted_at: float | None = None
        self._answers: Counter[str] = Counter()

    def record_step(self) -> None:
        """Record that the kernel log was read."""
        self._step_at = self._clock()

    def record_report(self, status: int | None, *, accepted: bool) -> None:
        """Record what became of a report."""
        with self._lock:
            self._answers["none" if status is None else str(status)] += 1
            if accepted:
                self._accepted_at = self._clock()

    def health(
        self,
        findings: Iterable[Finding],
        blind_spots: Iterable[Finding],
        *,
        sequence: int | None,
        child: bool | None,
    ) -> Health:
        """Return the snapshot of now."""
        now, spots = self._clock(), tuple(blind_spots)
        with self._lock:
            accepted_at, answers = self._accepted_at, dict(self._answers)
        return Health(
            age=now - self._began,
            step_age=now - self._step_at,
            report_age=None if accepted_at is None else now - accepted_at,
            sequence=sequence,
            lost=sum(each.count for each in spots if each.code == "log-lost"),
            blind_spots=tuple(sorted({each.code for each in spots} - {"log-lost"})),
            child=child,
            findings=Counter(each.severity.value for each in findings),
            answers=answers,
            cpu_seconds=time.process_time(),
            resident_bytes=int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        )
