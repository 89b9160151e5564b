"""State: what is wrong with this node in this boot, kept across restarts of the agent.

Findings, the place in the kernel log and the report's number are saved as one file, replaced in one step: a
killed agent goes on behind the last record that its saved findings contain, so nothing is lost or counted
twice. Another boot id means another boot: everything starts anew.
"""

import logging
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from checks.finding import Action, Finding, Severity
from checks.kernel import clearing
from checks.kernel.event import Event, to_finding
from checks.kernel.fold import Fault, Fold
from checks.kernel.kmsg import Lost
from checks.report import Inventory, NodeReport

AGENT_VERSION = "0.1.0"
"""Version that a report carries; that of the package."""

LOST_SECONDS = 3600.0
"""How long a report tells of lost records after the last loss (table 1.4)."""

STATE_FILE = "agent-state.json"
"""Name of the saved state in the state directory."""

log = logging.getLogger("checks.state")


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file. `cursor` is the sequence of the last kernel record taken in, None before the first."""

    boot_id: str
    cursor: int | None = None
    sequence: int = 0
    branch: int | None = None
    faults: tuple[Fault, ...] = ()
    blind_spots: tuple[Finding, ...] = ()


class NodeState:
    """The findings of one node. Safe to use from the reading and the reporting thread.

    Times are Unix seconds. `revision` grows with every change that a report would show.
    """

    def __init__(self, directory: Path, boot_id: str) -> None:
        self._file = directory / STATE_FILE
        self._lock = threading.Lock()
        self._save_failed = False
        self._fold = Fold()
        self.cursor: int | None = None
        self.sequence = self.revision = 0
        saved = self._load()
        self._begin(saved if saved is not None and saved.boot_id == boot_id else _fresh(boot_id))

    def restart(self, boot_id: str) -> None:
        """Forget everything: another boot has begun."""
        with self._lock:
            self._begin(_fresh(boot_id))
            self.revision += 1

    def take(self, sequence: int, events: Sequence[Event], at: float) -> None:
        """Take in the kernel record number `sequence`, logged at `at`, with the events in it, in one step."""
        if not events:
            self.cursor = sequence
            return
        ended: list[Fault] = []
        with self._lock:
            self.cursor = sequence
            for event in events:
                if clearing.is_good_news(event):
                    ended += self._fold.drop(partial(_ends, event))
                if clearing.is_fault(event):
                    self._fold.add(event, at)
                    self.revision += 1
            self.revision += len(ended)
        for fault in ended:
            log.info("finding ended: %s", _name(fault.event))

    def lose(self, lost: Lost, at: float) -> None:
        """Note that records of the kernel log were lost."""
        with self._lock:
            self.cursor = lost.last
            known = self._blind_spots.get("log-lost")
            total = lost.count + (known.count if known else 0)
            self._blind_spots["log-lost"] = Finding(
                check="log-lost",
                subsystem="agent",
                code="log-lost",
                severity=Severity.WARNING,
                action=Action.NONE,
                count=total,
                first_seen=known.first_seen if known else at,
                last_seen=at,
                summary=f"{total} kernel records were overwritten before the agent could read them.",
            )
            self.revision += 1
        log.warning("kernel records were lost: %d", lost.count)

    def see(self, blind: str | None, at: float) -> None:
        """Note why the kernel log cannot be read, None when it can."""
        with self._lock:
            known = self._blind_spots.get("log-blind")
            if (known.evidence if known else None) == blind:
                return
            if blind is None:
                del self._blind_spots["log-blind"]
            else:
                self._blind_spots["log-blind"] = _log_blind(blind, known.first_seen if known else at, at)
            self.revision += 1
        if blind is None:
            log.info("kernel log is read again")
        else:
            log.warning("kernel log cannot be read: %s", blind)

    def expire(self, now: float) -> None:
        """Drop what quiet has ended."""
        with self._lock:
            ended = self._fold.drop(lambda fault: _is_over(fault, now))
            lost = self._blind_spots.get("log-lost")
            forgotten = lost is not None and now - lost.last_seen >= LOST_SECONDS
            if forgotten:
                del self._blind_spots["log-lost"]
            self.revision += bool(ended) or forgotten

    def report(self, node: str, inventory: Inventory, now: float) -> NodeReport:
        """Return the next report; its number is saved before anybody can see it."""
        with self._lock:
            self.sequence += 1
            self._save()
            return NodeReport(
                node=node,
                boot_id=self.boot_id,
                sequence=self.sequence,
                sent_at=now,
                agent_version=AGENT_VERSION,
                inventory=inventory,
                findings=tuple(to_finding(each.event, each.first_at, each.last_at) for each in self._fold),
                blind_spots=tuple(self._blind_spots.values()),
            )

    def skip_to(self, sequence: int) -> None:
        """Number the next report higher than `sequence`."""
        with self._lock:
            self.sequence = max(self.sequence, sequence)

    def save(self) -> None:
        """Write the state; a failure is logged once and costs only what a restart would lose."""
        with self._lock:
            self._save()

    def _begin(self, saved: Saved) -> None:
        self.boot_id = saved.boot_id
        self.cursor = saved.cursor
        self.sequence = saved.sequence
        self.branch = saved.branch
        self._blind_spots = {each.code: each for each in saved.blind_spots}
        self._fold = Fold()
        for fault in saved.faults:
            self._fold.restore(fault)

    def _load(self) -> Saved | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Saved)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            log.warning("saved state cannot be read, starting anew: %s: %s", self._file, error)
            return None

    def _save(self) -> None:
        saved = Saved(
            boot_id=self.boot_id,
            cursor=self.cursor,
            sequence=self.sequence,
            branch=self.branch,
            faults=tuple(self._fold),
            blind_spots=tuple(self._blind_spots.values()),
        )
        new = self._file.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(saved))
            new.replace(self._file)
        except OSError as error:
            if not self._save_failed:
                log.warning("state cannot be saved, a restart will lose it: %s: %s", self._file, error)
            self._save_failed = True
        else:
            self._save_failed = False


def _fresh(boot_id: str) -> Saved:
    return Saved(boot_id=boot_id)


def _ends(news: Event, fault: Fault) -> bool:
    return clearing.ends(news, fault.event)


def _is_over(fault: Fault, now: float) -> bool:
    quiet = clearing.quiet_seconds(fault.event)
    return quiet is not None and now - fault.last_at >= quiet


def _name(event: Event) -> str:
    return "/".join(filter(None, event.key))


def _log_blind(reason: str, first_seen: float, last_seen: float) -> Finding:
    return Finding(
        check="log-blind",
        subsystem="agent",
        code="log-blind",
        severity=Severity.WARNING,
        action=Action.ASK,
        first_seen=first_seen,
        last_seen=last_seen,
        summary="The agent cannot read the kernel log, so faults that only it tells of stay unseen.",
        evidence=reason,
    )
