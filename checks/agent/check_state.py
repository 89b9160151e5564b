"""Check state: what the checks have observed in this boot, and the findings that follow."""

import logging
from contextlib import AbstractContextManager

from checks.check import Check, CheckResult
from checks.counters import Past
from checks.debounce import CheckMemory, Debouncer, Instant
from checks.finding import Finding

log = logging.getLogger("checks.agent.check_state")


class CheckState:
    """The findings of all checks. Safe to use from several threads, by `lock`.

    `memory` is what was saved of them. `revision` grows with every change that a report shows.
    """

    def __init__(self, lock: AbstractContextManager[object], memory: dict[str, CheckMemory]) -> None:
        self._lock = lock
        self._debouncer = Debouncer(memory)
        self.revision = 0

    @property
    def memory(self) -> dict[str, CheckMemory]:
        """Everything that a restart must not lose."""
        return self._debouncer.memory

    def past(self, check: str) -> Past:
        """Return what the check read earlier."""
        with self._lock:
            return self._debouncer.past(check)

    def record(self, check: Check, result: CheckResult, at: Instant) -> None:
        """Record one result; a repeat that comes too soon, as after a restart of the agent, is left out."""
        with self._lock:
            if self._debouncer.is_early(check, at):
                return
            before = self._keys()
            changed = self._debouncer.record(check, result, at)
            self.revision += changed
            after = self._keys() if changed else before
        for key in sorted(after - before):
            log.warning("finding began: %s", key)
        for key in sorted(before - after):
            log.info("finding ended: %s", key)

    def drop(self, check: str) -> None:
        """Forget a check that is switched off."""
        with self._lock:
            self.revision += self._debouncer.drop(check)

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong now."""
        with self._lock:
            return tuple(self._debouncer.findings())

    def blind_spots(self) -> tuple[Finding, ...]:
        """Return the checks that cannot observe."""
        with self._lock:
            return tuple(self._debouncer.blind_spots())

    def _keys(self) -> set[str]:
        return {each.key for each in (*self._debouncer.findings(), *self._debouncer.blind_spots())}
