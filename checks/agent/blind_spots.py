"""Blind spots: what the agent cannot see, as findings about the agent itself. They never count as healthy."""

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from checks.debounce import Instant
from checks.finding import Action, Finding, Severity
from checks.kernel.source.kmsg import LostRecords

LOST_SECONDS = 3600.0
"""How long a report mentions lost records after the last loss (table 1.4)."""

log = logging.getLogger("checks.agent.blind_spots")


class BlindSpots:
    """The blind spots of the agent, except checks that cannot observe. Safe to use from several threads.

    `saved` are those of before a restart. `revision` grows with every change that a report shows.
    """

    def __init__(self, lock: AbstractContextManager[object], saved: Iterable[Finding]) -> None:
        self._lock = lock
        self._spots = {each.code: each for each in saved}
        self.revision = 0

    def findings(self) -> tuple[Finding, ...]:
        """Return what cannot be seen now."""
        with self._lock:
            return tuple(self._spots.values())

    def record_lost(self, lost: LostRecords, at: float) -> None:
        """Record that records of the kernel log were lost at `at` (Unix seconds)."""
        with self._lock:
            known = self._spots.get("log-lost")
            total = lost.count + (known.count if known else 0)
            self._spots["log-lost"] = log_lost(total, known.first_seen if known else at, at)
            self.revision += 1
        log.warning("kernel records were lost: %d", lost.count)

    def record_log_trouble(self, reason: str | None, at: float) -> None:
        """Record why the kernel log cannot be read, None when it can."""
        if not self._record("log-blind", reason, log_blind, at):
            return
        if reason is None:
            log.info("kernel log is read again")
        else:
            log.warning("kernel log cannot be read: %s", reason)

    def record_policy_trouble(self, trouble: str, at: float) -> None:
        """Record why the mounted policy cannot be used, empty when it can."""
        self._record("policy-invalid", trouble or None, policy_invalid, at)

    def expire(self, at: Instant) -> None:
        """Drop losses that are long over."""
        with self._lock:
            lost = self._spots.get("log-lost")
            # In either direction: a wall clock that jumps must not keep it for longer.
            if lost is not None and abs(at.wall - lost.last_seen) >= LOST_SECONDS:
                del self._spots["log-lost"]
                self.revision += 1

    def _record(
        self, code: str, reason: str | None, make: Callable[[str, float, float], Finding], at: float
    ) -> bool:
        """Record why the agent is blind in this way, None when it is not; return whether that is new."""
        with self._lock:
            known = self._spots.get(code)
            if (known.evidence if known else None) == reason:
                return False
            if reason is None:
                del self._spots[code]
            else:
                self._spots[code] = make(reason, known.first_seen if known else at, at)
            self.revision += 1
            return True


def log_lost(count: int, first_seen: float, last_seen: float) -> Finding:
    """Return that `count` kernel records were overwritten unread."""
    return Finding(
        check="log-lost",
        subsystem="agent",
        code="log-lost",
        severity=Severity.WARNING,
        action=Action.NONE,
        count=count,
        first_seen=first_seen,
        last_seen=last_seen,
        summary=f"{count} kernel records were overwritten before the agent could read them.",
    )


def log_blind(reason: str, since: float, at: float) -> Finding:
    """Return that the kernel log cannot be read."""
    summary = "The agent cannot read the kernel log, so faults that only the kernel log reports go unnoticed."
    return _ask("log-blind", reason, (since, at), summary)


def policy_invalid(reason: str, since: float, at: float) -> Finding:
    """Return that the mounted policy cannot be used."""
    summary = "The node's check policy cannot be used; the last valid one, or the defaults, stay in force."
    return _ask("policy-invalid", reason, (since, at), summary)


def _ask(code: str, reason: str, span: tuple[float, float], summary: str) -> Finding:
    return Finding(
        check=code,
        subsystem="agent",
        code=code,
        severity=Severity.WARNING,
        action=Action.ASK,
        first_seen=span[0],
        last_seen=span[1],
        summary=summary,
        evidence=reason,
    )
