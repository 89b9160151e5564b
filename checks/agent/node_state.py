"""Node state: what is wrong with this node in this boot, kept across restarts of the agent.

The state consists of what the kernel log says, what the checks observed, and what the agent cannot see. It is
saved as one file, replaced in one step, together with the place in the kernel log and the number of the last
report. An agent that was killed goes on after the last record that its saved findings contain, so nothing is
lost or counted twice. Another boot id means another boot: everything starts again.
"""

import threading

import msgspec

from checks.agent.blind_spots import BlindSpots
from checks.agent.check_state import CheckState
from checks.agent.kernel_log_state import KernelLogState
from checks.agent.state_file import SavedState, StateFile, for_boot
from checks.check import Check, CheckResult, NodeFacts
from checks.debounce import Instant
from checks.finding import Finding
from checks.report import Inventory, NodeReport, ReportAccepted

AGENT_VERSION = "0.1.0"
"""Version that a report carries; that of the package."""

NUMBERS_AHEAD = 10
"""Reports for which one save is enough while they all say the same: five minutes of them."""

RECORDS_AHEAD = 1000
"""Kernel records without a finding that an agent reads once more after it was killed."""


class NodeState:
    """The state of one node. Safe to use from the reading, the checking and the reporting thread.

    `kernel`, `checks` and `blind_spots` are its parts; `restart` replaces them. `pool` is the node's pool as
    the bot last said, empty for none.
    """

    kernel: KernelLogState
    checks: CheckState
    blind_spots: BlindSpots
    _sequence: int
    _reset_boots: tuple[str, ...] | None
    _kept: object

    def __init__(self, file: StateFile, boot_id: str) -> None:
        self._file = file
        self._lock = threading.RLock()
        self._begin(for_boot(file.load(), boot_id))

    def restart(self, boot_id: str) -> None:
        """Forget what belongs to a boot: another one has begun."""
        with self._lock:
            self._begin(for_boot(self._saved(), boot_id))

    @property
    def revision(self) -> object:
        """A value that differs after every change that a report shows."""
        with self._lock:
            return self.boot_id, self.kernel.revision, self.checks.revision, self.blind_spots.revision

    def record_answer(self, answer: ReportAccepted) -> None:
        """Record what the bot said when it accepted a report."""
        with self._lock:
            if answer.pool is not None:
                self.pool = answer.pool
            if answer.reset_boots is not None:
                self._reset_boots = answer.reset_boots

    def record_result(self, check: Check, result: CheckResult, at: Instant) -> None:
        """Record one result of a check, also as evidence for verdicts about the kernel log."""
        # It logs, and whoever waits for the lock must not wait for a full pipe.
        self.checks.record(check, result, at)
        self._record_evidence()

    def drop_check(self, check: str) -> None:
        """Forget a check that is switched off."""
        self.checks.drop(check)
        self._record_evidence()

    def facts(self) -> NodeFacts:
        """Return what the checks may know of this boot."""
        with self._lock:
            known = self._reset_boots
            return NodeFacts(
                previous_boot_id=self._previous,
                repair_ended_previous_boot=None if known is None else self._previous in known,
                excluded_gpus=self.kernel.excluded_gpus(),
                memory_suspects=self.kernel.memory_suspects(),
            )

    def report(self, node: str, inventory: Inventory, now: float) -> NodeReport:
        """Return the next report. Its number and what is new in it are saved before anybody can see it."""
        with self._lock:
            inventory = self.kernel.identify(inventory)
            self._sequence += 1
            if self._sequence > self._reserved or self._essence() != self._kept:
                self.save()
            findings, blind_spots = self.findings()
            return NodeReport(
                node=node,
                boot_id=self.boot_id,
                sequence=self._sequence,
                sent_at=now,
                agent_version=AGENT_VERSION,
                inventory=inventory,
                findings=findings,
                blind_spots=blind_spots,
            )

    def findings(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Return the findings and the blind spots of now."""
        with self._lock:
            spots = (*self.blind_spots.findings(), *self.checks.blind_spots())
            return (*self.kernel.findings(), *self.checks.findings()), spots

    def skip_to(self, sequence: int) -> None:
        """Number the next report higher than `sequence`."""
        with self._lock:
            self._sequence = max(self._sequence, sequence)

    def save(self) -> None:
        """Write the state; a failure is logged once and costs only what a restart would lose."""
        with self._lock:
            reserved, essence = self._sequence + NUMBERS_AHEAD, self._essence()
            if self._file.save(msgspec.structs.replace(self._saved(), sequence=reserved)):
                self._reserved, self._kept = reserved, essence

    def _begin(self, saved: SavedState) -> None:
        self.boot_id = saved.boot_id
        self.pool = saved.pool
        self.kernel = KernelLogState(self._lock, saved.boot_id, saved.kernel, saved.cursor, saved.branch)
        self.checks = CheckState(self._lock, saved.checks)
        self._record_evidence()
        self.blind_spots = BlindSpots(self._lock, saved.blind_spots)
        self._previous = saved.previous
        self._reset_boots = None
        self._sequence = saved.sequence
        self._reserved = 0
        self._kept = None

    def _record_evidence(self) -> None:
        with self._lock:
            self.kernel.record_evidence(self.checks.findings())

    def _essence(self) -> object:
        """Return what must not be lost: when it changes, the state is saved before the next report."""
        return self.revision, self.pool, self.kernel.boards, (self.kernel.cursor or 0) // RECORDS_AHEAD

    def _saved(self) -> SavedState:
        return SavedState(
            boot_id=self.boot_id,
            previous=self._previous,
            pool=self.pool,
            checks=self.checks.memory,
            cursor=self.kernel.cursor,
            sequence=self._sequence,
            branch=self.kernel.branch,
            kernel=self.kernel.kept,
            blind_spots=self.blind_spots.findings(),
        )
