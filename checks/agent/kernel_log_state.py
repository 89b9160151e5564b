"""Kernel log state: the open faults in the kernel log, and how far it has been read."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec

from checks.debounce import Instant
from checks.finding import Finding
from checks.gpu.memory_suspects import memory_suspects
from checks.gpu.nvml_exclusions import excluded_gpus
from checks.gpu.recovery_action import recovery_requests
from checks.gpu_sample import GpuSnapshot
from checks.kernel.faults.kernel_faults import KernelFaults, SavedFaults
from checks.kernel.faults.recurrence import GpuIdentity
from checks.kernel.parse.event import KernelEvent
from checks.report import Inventory

log = logging.getLogger("checks.agent.kernel_log_state")


class KernelLogState:
    """What the kernel log says in boot `boot_id`. Safe to use from several threads, by `lock`.

    `cursor` is the sequence of the last record read, `branch` the driver branch that it names; both are None
    before the first. `revision` grows with every change that a report shows.
    """

    def __init__(
        self,
        lock: AbstractContextManager[object],
        boot_id: str,
        kept: SavedFaults,
        cursor: int | None,
        branch: int | None,
    ) -> None:
        self._lock = lock
        self._faults = KernelFaults(boot_id, kept)
        self.cursor = cursor
        self.branch = branch
        self.revision = 0

    @property
    def kept(self) -> SavedFaults:
        """Everything that a restart must not lose."""
        return self._faults.kept

    @property
    def boards(self) -> tuple[GpuIdentity, ...]:
        """The identity of each GPU, as far as it is known."""
        return self._faults.boards

    def record(
        self, events: Sequence[tuple[KernelEvent, Instant]], cursor: int | None, branch: int | None
    ) -> None:
        """Record what was read up to `cursor`, in one step: the events and when each was logged."""
        ended: list[KernelEvent] = []
        with self._lock:
            self.cursor, self.branch = cursor, branch
            for event, at in events:
                is_fault, over = self._faults.take(event, at.uptime, at.wall)
                self.revision += is_fault + len(over)
                ended += over
        _log_ended(ended)

    def record_gpus(self, gpus: GpuSnapshot) -> None:
        """Record what NVML says: the identity of each GPU, and the recovery that the driver asks for."""
        with self._lock:
            for each in gpus.samples:
                if each.board is not None:
                    self._faults.learn(GpuIdentity(each.gpu, each.board.uuid, each.board.serial))
            changed, ended = self._faults.hear(recovery_requests(gpus))
            self.revision += changed
        _log_ended(ended)

    def expire(self, at: Instant) -> None:
        """Drop the faults that quiet has ended."""
        with self._lock:
            self.revision += self._faults.expire(at.uptime)

    def identify(self, inventory: Inventory) -> Inventory:
        """Learn the identity of the GPUs in `inventory`; return it with what else is known of them."""
        if inventory.gpus is None:
            return inventory
        gpus = []
        with self._lock:
            for gpu in inventory.gpus:
                self._faults.learn(GpuIdentity(gpu.address, gpu.uuid))
                known = self._faults.board(gpu.address)
                gpus.append(msgspec.structs.replace(gpu, uuid=known.uuid, serial=known.serial))
        return Inventory(gpus=tuple(gpus))

    def excluded_gpus(self) -> frozenset[str]:
        """Return the GPUs that NVML must not be asked about."""
        with self._lock:
            return excluded_gpus(self._faults.events)

    def memory_suspects(self) -> dict[str, float]:
        """Return, by GPU, the uptime of its newest uncorrectable memory error."""
        with self._lock:
            return memory_suspects(self._faults.faults)

    def record_evidence(self, findings: tuple[Finding, ...]) -> None:
        """Record what the checks find now: some of it changes verdicts about the kernel log (M1, M5, M6)."""
        with self._lock:
            before = self._faults.findings()
            self._faults.take_evidence(findings)
            self.revision += before != self._faults.findings()

    def findings(self) -> tuple[Finding, ...]:
        """Return what is wrong now."""
        with self._lock:
            return self._faults.findings()


def _log_ended(events: Sequence[KernelEvent]) -> None:
    for event in events:
        log.info("finding ended: %s", "/".join(filter(None, event.key)))
