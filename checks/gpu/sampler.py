"""The GPU door: once a minute, ask the PCI bus, the driver's files and NVML about every GPU of the node.

NVML is asked one GPU after another, by PCI address. A missed deadline ends the round, and the next one begins
behind the GPU that was asked; after a fault NVML is left alone for longer each time. A GPU that the kernel
log has given up is not asked at all: calls to it hang, and storms of them make a sick driver worse.

What is slow to read of a board is read in a minute of its own, so that it never bunches, and in the next
round when the kernel log throws doubt on the GPU's memory. How much memory is in use is asked for only while
no program has the GPUs open: a job pays nothing for it.
"""

import os
import time
from collections.abc import Mapping

import msgspec

from checks.check import Scene
from checks.gpu.gpu_users import has_no_clients
from checks.gpu.memory_suspects import Doubted
from checks.gpu.nvml_exclusions import LeaveAlone
from checks.gpu.nvml_process import DEADLINE_SECONDS, Child, Silence
from checks.gpu.pci import Bus, driver_gpus
from checks.gpu_sample import (
    DRIVER_NOT_LOADED,
    ENDED,
    MISMATCH,
    TIMEOUT,
    UNINITIALIZED,
    UNKNOWN,
    Answer,
    Board,
    Gpus,
    Library,
    Open,
    Read,
    Refused,
    Sample,
)

ROUND_SECONDS = 15.0
"""A round that has taken so long leaves the other GPUs to the next one (ours)."""

BOARD_SECONDS = 600.0
"""How often slow things are read (section 6), and GPUs are looked for that the library does not list."""

BACKOFF_SECONDS = 60.0
"""Pause after the first bad round; it doubles up to ten minutes (ours)."""

SLACK_SECONDS = 10.0
"""Rounds are a minute apart, or up to so much less: they begin at a tick."""

_DRIVER_GONE = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, MISMATCH})
"""Return codes that say of one GPU what is true of the whole library: it has to be opened anew."""


class GpuDoor:
    """Fetches `Gpus`. A node without GPUs of its own starts no child."""

    gives: type = Gpus
    every_seconds = 60.0

    def __init__(
        self, environment: Mapping[str, str] = os.environ, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        self._child = Child(environment, deadline_seconds)
        self._bus = Bus()
        self._last = Gpus()
        self._first = 0
        self._bad_rounds = 0
        self._not_before = 0.0

    @property
    def child_pid(self) -> int | None:
        """The process that talks to NVML now."""
        return self._child.pid

    def fetch(self, scene: Scene) -> Gpus:
        """Return what the three witnesses say now; where NVML was not asked, what it said last."""
        if scene.fetched.get(Gpus) is None:
            self._last, self._bad_rounds, self._not_before = Gpus(), 0, 0.0
        pci, switches = self._bus.read(scene.root)
        seen = msgspec.structs.replace(self._last, pci=pci, switches=switches, driver=driver_gpus(scene.root))
        seen = _without_memory(seen)
        if not seen.ours:
            self._child.close()
            seen = Gpus(pci=pci, switches=switches, driver=seen.driver)
        elif scene.uptime >= self._not_before:
            seen = self._ask(seen, scene)
        self._last = seen
        return seen

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def _ask(self, seen: Gpus, scene: Scene) -> Gpus:
        until = time.monotonic() + ROUND_SECONDS
        seen = msgspec.structs.replace(seen, rounds=seen.rounds + 1)
        if _others_have_come(seen, scene.uptime):
            self._child.close()
        if not self._child.works or seen.library is None:
            seen = msgspec.structs.replace(self._open(seen), opened_at=scene.uptime)
        if seen.library is not None:
            alone = scene.held(LeaveAlone)
            left_alone = alone.gpus if isinstance(alone, LeaveAlone) else frozenset()
            seen = msgspec.structs.replace(seen, left_alone=tuple(sorted(left_alone)))
            seen = self._read(seen, scene, until)
        bad = seen.library is None
        self._bad_rounds = self._bad_rounds + 1 if bad else 0
        pause = BACKOFF_SECONDS * 2 ** min(self._bad_rounds - 1, 16) if bad else 0.0
        self._not_before = scene.uptime + min(pause, BOARD_SECONDS) - SLACK_SECONDS
        return seen

    def _open(self, seen: Gpus) -> Gpus:
        answer = self._child.ask(Open())
        if isinstance(answer, Library):
            return msgspec.structs.replace(seen, library=answer, refused=None)
        return self._gave_up(seen, _trouble(answer) or Refused("nvmlInit", UNKNOWN), "nvmlInit")

    def _read(self, seen: Gpus, scene: Scene, until: float) -> Gpus:
        requests = _requests(seen, scene)
        self._first %= max(1, len(requests))
        samples = {each.gpu: each for each in seen.samples}
        for request in requests[self._first :] + requests[: self._first]:
            if time.monotonic() > until:
                break
            answer = self._child.ask(request)
            self._first += 1
            if (trouble := _trouble(answer)) is not None or not isinstance(answer, Sample):
                seen = self._gave_up(seen, trouble or _STRANGE, request.gpu)
                break
            samples[request.gpu] = _newest(samples.get(request.gpu), answer, scene.uptime)
        else:
            seen = msgspec.structs.replace(seen, misses=0, missed="")
        here = {each.gpu for each in seen.pci or ()}
        kept = tuple(samples[gpu] for gpu in sorted(samples) if gpu in here)
        seen = self._without_devices(msgspec.structs.replace(seen, samples=kept))
        # A program that came during the round may be whose memory it is.
        return seen if has_no_clients(scene.root) else _without_memory(seen)

    def _gave_up(self, seen: Gpus, trouble: Silence | Refused, where: str) -> Gpus:
        self._child.close()
        if isinstance(trouble, Refused):
            return msgspec.structs.replace(seen, library=None, refused=trouble)
        if trouble.missed:
            return msgspec.structs.replace(
                seen, library=None, misses=seen.misses + 1, missed=f"{where}: {trouble.reason}"
            )
        return msgspec.structs.replace(seen, library=None, refused=Refused(trouble.reason, ENDED))

    def _without_devices(self, seen: Gpus) -> Gpus:
        """When every GPU is unknown to NVML though the driver has them, begin anew (nvidia-docker #1730)."""
        if seen.samples and seen.driver and all(each.failed == UNKNOWN for each in seen.samples):
            self._child.close()
            return msgspec.structs.replace(seen, library=None, refused=Refused("every GPU", UNKNOWN))
        return seen


_STRANGE = Silence("a strange answer", missed=False)
_TIMED_OUT = Silence("the driver timed out", missed=True)


def _trouble(answer: Answer | Silence) -> Silence | Refused | None:
    """Return why NVML is not asked any further in this round, None when it may be."""
    match answer:
        case Silence():
            return answer
        case Refused(code=code) | Sample(failed=code) if code == TIMEOUT:
            return _TIMED_OUT
        case Sample(denied=denied) if any(code == TIMEOUT for _, code in denied):
            return _TIMED_OUT
        case Sample(failed=code) if code in _DRIVER_GONE:
            return Refused("nvmlDeviceGetFieldValues", code)
        case Refused():
            return answer
        case _:
            return None


def _requests(seen: Gpus, scene: Scene) -> list[Read]:
    doubted = scene.held(Doubted)
    doubts = doubted.since if isinstance(doubted, Doubted) else {}
    boards = {each.gpu: each.board for each in seen.samples}
    memory = has_no_clients(scene.root)
    return [
        Read(each.gpu, _is_due(boards.get(each.gpu), doubts.get(each.gpu), place, scene.uptime), memory)
        for place, each in enumerate(seen.pci or ())
        if each.is_ours and each.gpu not in seen.left_alone
    ]


def _is_due(board: Board | None, doubted_since: float | None, place: int, uptime: float) -> bool:
    """Whether it is the turn of the board at `place`, each of which has a minute of its own in ten."""
    if board is None or (doubted_since is not None and doubted_since >= board.read_at):
        return True
    shift = place * GpuDoor.every_seconds
    return (uptime + shift) // BOARD_SECONDS > (board.read_at + shift) // BOARD_SECONDS


def _newest(before: Sample | None, sample: Sample, uptime: float) -> Sample:
    """Return the sample; of a GPU that cannot be read, what was known of it; the board as last read."""
    if sample.failed and before is not None:
        return msgspec.structs.replace(before, failed=sample.failed)
    board = before.board if before is not None else None
    if sample.board is not None:
        board = msgspec.structs.replace(sample.board, read_at=uptime)
    return msgspec.structs.replace(sample, asked_at=uptime, board=board)


def _without_memory(seen: Gpus) -> Gpus:
    """Forget how much memory was in use: it says nothing of another moment, or when it may be in use."""
    samples = tuple(msgspec.structs.replace(each, memory_used=None) for each in seen.samples)
    return msgspec.structs.replace(seen, samples=samples)


def _others_have_come(seen: Gpus, uptime: float) -> bool:
    """Whether the driver has GPUs of which the library, opened some time ago, knows nothing."""
    if seen.library is None or uptime - seen.opened_at < BOARD_SECONDS - SLACK_SECONDS:
        return False
    known = {*seen.library.gpus, *(each.gpu for each in seen.samples if not each.failed)}
    return not known.issuperset(seen.driver or ())
