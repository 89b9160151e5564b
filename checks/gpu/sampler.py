"""The GPU sampler: once a minute, ask the PCI bus, the driver's files and NVML about every GPU of the node.

NVML is asked about one GPU after another, by PCI address. A missed deadline ends the round, and the next
round starts after the GPU that missed it. After each further bad round NVML is left alone for longer. A GPU
that the kernel log reports as lost is not asked about at all: such calls hang, and storms of them make a sick
driver worse.

What is slow to read of a board has a minute of its own for each board, so that slow reads never bunch; it is
also read in the next round when the kernel log makes the GPU's memory suspect. How much memory is in use is
read only while no program has the GPUs open, so a job pays nothing for it.
"""

import time
from collections.abc import Mapping

import msgspec

from checks.check import CheckContext
from checks.gpu.gpu_users import has_no_users
from checks.gpu.nvml_process import NoAnswer, NvmlChild
from checks.gpu.pci import PciBus, driver_gpus
from checks.gpu_sample import (
    DRIVER_NOT_LOADED,
    ENDED,
    MISMATCH,
    TIMEOUT,
    UNINITIALIZED,
    UNKNOWN,
    BoardSample,
    GpuSample,
    GpuSnapshot,
    NvmlAnswer,
    NvmlLibrary,
    NvmlRefused,
    OpenLibrary,
    ReadGpu,
)

EVERY_SECONDS = 60.0
"""Time between two rounds."""

ROUND_SECONDS = 15.0
"""After so many seconds a round leaves the other GPUs to the next one (ours)."""

BOARD_SECONDS = 600.0
"""How often a board is read (section 6), and how often NVML may be opened again to find new GPUs."""

BACKOFF_SECONDS = 60.0
"""Pause after the first bad round; it doubles up to ten minutes (ours)."""

SLACK_SECONDS = 10.0
"""How much less than a minute may lie between two rounds, because they start at a tick."""

_DRIVER_GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, MISMATCH})
"""Return codes for one GPU that concern the whole library: it has to be opened again."""


class GpuSampler:
    """Takes a `GpuSnapshot` at a time. A node without GPUs of its own starts no child process.

    `environment` is that of the child, which has `deadline_seconds` for each answer.
    """

    def __init__(self, environment: Mapping[str, str], deadline_seconds: float) -> None:
        self._child = NvmlChild(environment, deadline_seconds)
        self._bus = PciBus()
        self._last = GpuSnapshot()
        self._first = 0
        self._bad_rounds = 0
        self._not_before = 0.0

    @property
    def child_pid(self) -> int | None:
        """The process that talks to NVML now."""
        return self._child.pid

    def sample(self, context: CheckContext) -> GpuSnapshot:
        """Return what PCI bus, driver and NVML say now; where NVML is not asked, what it said last.

        A context without an earlier snapshot starts from nothing. Ends within its own deadline.
        """
        if context.facts.gpus is None:
            self._last, self._bad_rounds, self._not_before = GpuSnapshot(), 0, 0.0
        pci, switches = self._bus.read(context.root)
        driver = driver_gpus(context.root)
        seen = _without_memory(msgspec.structs.replace(self._last, pci=pci, switches=switches, driver=driver))
        if not seen.ours:
            self._child.close()
            seen = GpuSnapshot(pci=pci, switches=switches, driver=driver)
        elif context.uptime >= self._not_before:
            seen = self._ask(seen, context)
        self._last = seen
        return seen

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def _ask(self, seen: GpuSnapshot, context: CheckContext) -> GpuSnapshot:
        until = time.monotonic() + ROUND_SECONDS
        seen = msgspec.structs.replace(seen, rounds=seen.rounds + 1)
        if _driver_has_more(seen, context.uptime):
            self._child.close()
        if not self._child.works or seen.library is None:
            seen = msgspec.structs.replace(self._open(seen), opened_at=context.uptime)
        if seen.library is not None:
            excluded = tuple(sorted(context.facts.excluded_gpus))
            seen = self._read(msgspec.structs.replace(seen, excluded=excluded), context, until)
        bad = seen.library is None
        self._bad_rounds = self._bad_rounds + 1 if bad else 0
        pause = BACKOFF_SECONDS * 2 ** min(self._bad_rounds - 1, 16) if bad else 0.0
        self._not_before = context.uptime + min(pause, BOARD_SECONDS) - SLACK_SECONDS
        return seen

    def _open(self, seen: GpuSnapshot) -> GpuSnapshot:
        answer = self._child.ask(OpenLibrary())
        if isinstance(answer, NvmlLibrary):
            return msgspec.structs.replace(seen, library=answer, refused=None)
        return self._gave_up(seen, _trouble(answer) or NvmlRefused("nvmlInit", UNKNOWN), "nvmlInit")

    def _read(self, seen: GpuSnapshot, context: CheckContext, until: float) -> GpuSnapshot:
        requests = _requests(seen, context)
        self._first %= max(1, len(requests))
        samples = {each.gpu: each for each in seen.samples}
        for request in requests[self._first :] + requests[: self._first]:
            if time.monotonic() > until:
                break
            answer = self._child.ask(request)
            self._first += 1
            if (trouble := _trouble(answer)) is not None or not isinstance(answer, GpuSample):
                seen = self._gave_up(seen, trouble or _STRANGE, request.gpu)
                break
            samples[request.gpu] = _newest(samples.get(request.gpu), answer, context.uptime)
        else:
            seen = msgspec.structs.replace(seen, misses=0, missed="")
        here = {each.gpu for each in seen.pci or ()}
        kept = tuple(samples[gpu] for gpu in sorted(samples) if gpu in here)
        seen = self._without_devices(msgspec.structs.replace(seen, samples=kept))
        # A program that started during the round may own that memory.
        return seen if has_no_users(context.root) else _without_memory(seen)

    def _gave_up(self, seen: GpuSnapshot, trouble: NoAnswer | NvmlRefused, where: str) -> GpuSnapshot:
        self._child.close()
        if isinstance(trouble, NvmlRefused):
            return msgspec.structs.replace(seen, library=None, refused=trouble)
        if trouble.missed:
            return msgspec.structs.replace(
                seen, library=None, misses=seen.misses + 1, missed=f"{where}: {trouble.reason}"
            )
        return msgspec.structs.replace(seen, library=None, refused=NvmlRefused(trouble.reason, ENDED))

    def _without_devices(self, seen: GpuSnapshot) -> GpuSnapshot:
        """Open NVML again when it knows none of the GPUs that the driver has (nvidia-docker #1730)."""
        if seen.samples and seen.driver and all(each.failed == UNKNOWN for each in seen.samples):
            self._child.close()
            return msgspec.structs.replace(seen, library=None, refused=NvmlRefused("every GPU", UNKNOWN))
        return seen


_STRANGE = NoAnswer("a strange answer", missed=False)
_TIMED_OUT = NoAnswer("the driver timed out", missed=True)


def _trouble(answer: NvmlAnswer | NoAnswer) -> NoAnswer | NvmlRefused | None:
    """Return why the round ends here, None when it goes on."""
    match answer:
        case NoAnswer():
            return answer
        case NvmlRefused(code=code) | GpuSample(failed=code) if code == TIMEOUT:
            return _TIMED_OUT
        case GpuSample(denied=denied) if any(code == TIMEOUT for _, code in denied):
            return _TIMED_OUT
        case GpuSample(failed=code) if code in _DRIVER_GONE:
            return NvmlRefused("nvmlDeviceGetFieldValues", code)
        case NvmlRefused():
            return answer
        case _:
            return None


def _requests(seen: GpuSnapshot, context: CheckContext) -> list[ReadGpu]:
    suspects = context.facts.memory_suspects
    boards = {each.gpu: each.board for each in seen.samples}
    memory = has_no_users(context.root)
    return [
        ReadGpu(
            each.gpu, _is_due(boards.get(each.gpu), suspects.get(each.gpu), place, context.uptime), memory
        )
        for place, each in enumerate(seen.pci or ())
        if each.is_ours and each.gpu not in seen.excluded
    ]


def _is_due(board: BoardSample | None, suspected_at: float | None, place: int, uptime: float) -> bool:
    """Whether the board at `place` is due: each has one minute of ten to itself."""
    if board is None or (suspected_at is not None and suspected_at >= board.read_at):
        return True
    shift = place * EVERY_SECONDS
    return (uptime + shift) // BOARD_SECONDS > (board.read_at + shift) // BOARD_SECONDS


def _newest(before: GpuSample | None, sample: GpuSample, uptime: float) -> GpuSample:
    """Return the sample with the board as last read; for a GPU that cannot be read, what was known."""
    if sample.failed and before is not None:
        return msgspec.structs.replace(before, failed=sample.failed)
    board = before.board if before is not None else None
    if sample.board is not None:
        board = msgspec.structs.replace(sample.board, read_at=uptime)
    return msgspec.structs.replace(sample, asked_at=uptime, board=board)


def _without_memory(seen: GpuSnapshot) -> GpuSnapshot:
    """Drop how much memory was in use: the figure holds for the moment of the reading only."""
    samples = tuple(msgspec.structs.replace(each, memory_used=None) for each in seen.samples)
    return msgspec.structs.replace(seen, samples=samples)


def _driver_has_more(seen: GpuSnapshot, uptime: float) -> bool:
    """Whether the driver has GPUs that the library, opened some time ago, does not know."""
    if seen.library is None or uptime - seen.opened_at < BOARD_SECONDS - SLACK_SECONDS:
        return False
    known = {*seen.library.gpus, *(each.gpu for each in seen.samples if not each.failed)}
    return not known.issuperset(seen.driver or ())
