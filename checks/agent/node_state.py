"""State: what is wrong with this node in this boot, kept across restarts of the agent.

Findings, the place in the kernel log and the report's number are saved as one file, replaced in one step: a
killed agent goes on behind the last record that its saved findings contain, so nothing is lost or counted
twice. Another boot id means another boot: everything starts anew.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from checks.agent import blind_spots
from checks.agent.state_file import Saved, StateFile, for_boot
from checks.check import Check, Look, Past
from checks.debounce import Moment, Watch
from checks.finding import Finding
from checks.gpu.memory_suspects import Doubted, doubted
from checks.gpu.nvml_exclusions import LeaveAlone, leave_alone
from checks.gpu.recovery_action import wishes
from checks.gpu_sample import Gpus
from checks.host.boot import Boot
from checks.host.probes import Bot
from checks.kernel.event import Event
from checks.kernel.identity import Board
from checks.kernel.kmsg import Lost
from checks.kernel.standing import Standing
from checks.report import Accepted, Inventory, NodeReport

AGENT_VERSION = "0.1.0"
"""Version that a report carries; that of the package."""

NUMBERS_AHEAD = 10
"""Reports for which one saving is enough while they all say the same: five minutes of them."""

RECORDS_AHEAD = 1000
"""Kernel records without a finding that an agent reads once more when it was killed."""

LOST_SECONDS = 3600.0
"""How long a report tells of lost records after the last loss (table 1.4)."""

log = logging.getLogger("checks.agent.node_state")


class NodeState:
    """The findings of one node. Safe to use from the reading and the reporting thread.

    Times are Unix seconds. `revision` grows with every change that a report would show, and `tell` is called
    when a check has made one. `bot_url` is where the agent reports to.
    """

    def __init__(self, directory: Path, boot_id: str) -> None:
        self._file = StateFile(directory)
        self._lock = threading.Lock()
        self._kernel = Standing()
        self._reset_boots: tuple[str, ...] | None = None
        self.tell: Callable[[], None] = lambda: None
        self.bot_url = ""
        self.cursor: int | None = None
        self.sequence = self.revision = 0
        self._begin(for_boot(self._file.load(), boot_id))

    def restart(self, boot_id: str) -> None:
        """Forget everything: another boot has begun."""
        with self._lock:
            self._begin(for_boot(self._saved(), boot_id))
            self.revision += 1

    def take(self, events: Sequence[tuple[Event, Moment]], cursor: int | None) -> None:
        """Take in what was read of the kernel log up to record `cursor`, in one step: events and when."""
        ended: list[Event] = []
        with self._lock:
            self.cursor = cursor
            for event, at in events:
                is_fault, over = self._kernel.take(event, at.uptime, at.now)
                self.revision += is_fault + len(over)
                ended += over
        _log_ended(ended)

    def lose(self, lost: Lost, at: float) -> None:
        """Note that records of the kernel log were lost."""
        with self._lock:
            known = self._blind_spots.get("log-lost")
            total = lost.count + (known.count if known else 0)
            first = known.first_seen if known else at
            self._blind_spots["log-lost"] = blind_spots.log_lost(total, first, at)
            self.revision += 1
        log.warning("kernel records were lost: %d", lost.count)

    def see(self, reason: str | None, at: float) -> None:
        """Note why the kernel log cannot be read, None when it can."""
        if not self._spot("log-blind", reason, blind_spots.log_blind, at):
            return
        if reason is None:
            log.info("kernel log is read again")
        else:
            log.warning("kernel log cannot be read: %s", reason)

    def see_policy(self, trouble: str, at: float) -> None:
        """Note why the mounted policy cannot be used, empty when it can."""
        self._spot("policy-invalid", trouble or None, blind_spots.policy_invalid, at)

    def hear(self, answer: Accepted) -> None:
        """Take in what the bot said when it took a report."""
        with self._lock:
            if answer.pool is not None:
                self.pool = answer.pool
            if answer.reset_boots is not None:
                self._reset_boots = answer.reset_boots

    def past(self, check: str) -> Past:
        """Return what earlier looks of the check have read."""
        with self._lock:
            return self._watch.past(check)

    def facts(self) -> Mapping[type, object]:
        """Return what is known of this boot, for the checks."""
        ours = None if self._reset_boots is None else self.previous in self._reset_boots
        with self._lock:
            alone, doubts = leave_alone(self._kernel.events), doubted(self._kernel.faults)
        return {Boot: Boot(self.previous, ours), Bot: Bot(self.bot_url), LeaveAlone: alone, Doubted: doubts}

    def take_fetched(self, found: object) -> None:
        """Take in what a door has brought: who the GPUs are, and what the driver asks for."""
        if not isinstance(found, Gpus):
            return
        with self._lock:
            for each in found.samples:
                if each.board is not None:
                    self._kernel.learn(Board(each.gpu, each.board.uuid, each.board.serial))
            changed, ended = self._kernel.hear(wishes(found))
            self.revision += changed
        if changed:
            self.tell()
        _log_ended(ended)

    def take_look(self, check: Check, look: Look, at: Moment) -> None:
        """Take in one look of a check; one that comes too soon, because the agent began anew, is left out."""
        with self._lock:
            if self._watch.has_just_looked(check, at):
                return
            before = {each.key for each in self._check_findings()}
            changed = self._watch.fold(check, look, at)
            self.revision += changed
            after = {each.key for each in self._check_findings()} if changed else before
        if changed:
            self.tell()
        for key in sorted(after - before):
            log.warning("finding began: %s", key)
        for key in sorted(before - after):
            log.info("finding ended: %s", key)

    def drop_check(self, check: str) -> None:
        """Forget a check that is switched off."""
        with self._lock:
            self.revision += self._watch.drop(check)

    def expire(self, at: Moment) -> None:
        """Drop what quiet has ended."""
        with self._lock:
            ended = self._kernel.expire(at.uptime)
            lost = self._blind_spots.get("log-lost")
            # Either way round: a wall clock that jumps must not keep it for longer.
            forgotten = lost is not None and abs(at.now - lost.last_seen) >= LOST_SECONDS
            if forgotten:
                del self._blind_spots["log-lost"]
            self.revision += ended or forgotten

    def report(self, node: str, inventory: Inventory, now: float) -> NodeReport:
        """Return the next report; its number, and what is new in it, is saved before anybody can see it."""
        with self._lock:
            inventory = self._named(inventory)
            self.sequence += 1
            if self.sequence > self._reserved or self._essence() != self._kept:
                self._save()
            return NodeReport(
                node=node,
                boot_id=self.boot_id,
                sequence=self.sequence,
                sent_at=now,
                agent_version=AGENT_VERSION,
                inventory=inventory,
                findings=self._findings(),
                blind_spots=self._spots(),
            )

    def standing(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Return the findings and the blind spots of now."""
        with self._lock:
            return self._findings(), self._spots()

    def skip_to(self, sequence: int) -> None:
        """Number the next report higher than `sequence`."""
        with self._lock:
            self.sequence = max(self.sequence, sequence)

    def save(self) -> None:
        """Write the state; a failure is logged once and costs only what a restart would lose."""
        with self._lock:
            self._save()

    def _begin(self, saved: Saved) -> None:
        self._reserved = 0
        self._kept: object = None
        self.boot_id = saved.boot_id
        self.cursor = saved.cursor
        self.sequence = saved.sequence
        self.branch = saved.branch
        self.previous = saved.previous
        self.pool = saved.pool
        self._reset_boots = None
        self._watch = Watch(saved.checks)
        self._blind_spots = {each.code: each for each in saved.blind_spots}
        self._kernel = Standing(saved.boot_id, saved.kernel)

    def _findings(self) -> tuple[Finding, ...]:
        seen = tuple(self._watch.findings())
        return (*self._kernel.findings(seen), *seen)

    def _named(self, inventory: Inventory) -> Inventory:
        """Learn who the GPUs are, and say what else is known of them."""
        if inventory.gpus is None:
            return inventory
        gpus = []
        for gpu in inventory.gpus:
            self._kernel.learn(Board(gpu.address, gpu.uuid))
            known = self._kernel.board(gpu.address)
            gpus.append(msgspec.structs.replace(gpu, uuid=known.uuid, serial=known.serial))
        return Inventory(gpus=tuple(gpus))

    def _spots(self) -> tuple[Finding, ...]:
        return (*self._blind_spots.values(), *self._watch.blind_spots())

    def _check_findings(self) -> tuple[Finding, ...]:
        return (*self._watch.findings(), *self._watch.blind_spots())

    def _spot(
        self, code: str, reason: str | None, make: Callable[[str, float, float], Finding], at: float
    ) -> bool:
        """Note why the agent is blind in this way, None when it is not; say whether that is new."""
        with self._lock:
            known = self._blind_spots.get(code)
            if (known.evidence if known else None) == reason:
                return False
            if reason is None:
                del self._blind_spots[code]
            else:
                self._blind_spots[code] = make(reason, known.first_seen if known else at, at)
            self.revision += 1
            return True

    def _save(self) -> None:
        reserved, essence = self.sequence + NUMBERS_AHEAD, self._essence()
        if self._file.save(msgspec.structs.replace(self._saved(), sequence=reserved)):
            self._reserved, self._kept = reserved, essence

    def _essence(self) -> object:
        """Return what must not be lost: when it changes, the state is saved before the next report."""
        return self.revision, self.pool, self._kernel.boards, (self.cursor or 0) // RECORDS_AHEAD

    def _saved(self) -> Saved:
        return Saved(
            boot_id=self.boot_id,
            previous=self.previous,
            pool=self.pool,
            checks=self._watch.memory,
            cursor=self.cursor,
            sequence=self.sequence,
            branch=self.branch,
            kernel=self._kernel.kept,
            blind_spots=tuple(self._blind_spots.values()),
        )


def _log_ended(events: Sequence[Event]) -> None:
    for event in events:
        log.info("finding ended: %s", "/".join(filter(None, event.key)))
