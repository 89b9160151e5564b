"""The GPU door: once a minute, ask the PCI bus, the driver's files and NVML about every GPU of the node.

NVML is asked one GPU after another, by PCI address. A missed deadline ends the round, and the next one begins
behind the GPU that was asked; after a fault NVML is left alone for longer each time. A GPU that the kernel
log has given up is not asked at all: calls to it hang, and storms of them make a sick driver worse.
"""

import os
import time
from collections.abc import Mapping

import msgspec

from checks.check import Scene
from checks.gpu.leave_alone import LeaveAlone
from checks.gpu.pci import Bus, driver_gpus
from checks.gpu.process import DEADLINE_SECONDS, Child, Silence
from checks.gpu.sample import (
    ENDED,
    TIMEOUT,
    UNKNOWN,
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
"""How often slow things are read (section 6)."""

BACKOFF_SECONDS = 60.0
"""Pause after the first bad round; it doubles up to ten minutes (ours)."""

SLACK_SECONDS = 5.0
"""Rounds are a minute apart, give or take this."""


class GpuDoor:
    """Fetches `Gpus`. A node without NVIDIA GPUs starts no child."""

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
        if not pci:
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
        began = time.monotonic()
        seen = msgspec.structs.replace(seen, rounds=seen.rounds + 1)
        board = (
            seen.last_board_at is None or scene.uptime - seen.last_board_at >= BOARD_SECONDS - SLACK_SECONDS
        )
        if board and seen.library is not None and _others_have_come(seen, seen.library):
            self._child.close()
        if not self._child.works or seen.library is None:
            seen = self._open(seen)
        if seen.library is not None:
            alone = scene.held(LeaveAlone)
            left_alone = alone.gpus if isinstance(alone, LeaveAlone) else frozenset()
            seen = msgspec.structs.replace(seen, left_alone=tuple(sorted(left_alone)))
            seen = self._read(seen, began + ROUND_SECONDS, scene.uptime, board=board)
        bad = seen.library is None
        self._bad_rounds = self._bad_rounds + 1 if bad else 0
        pause = BACKOFF_SECONDS * 2 ** min(self._bad_rounds - 1, 16) if bad else 0.0
        self._not_before = scene.uptime + min(pause, BOARD_SECONDS) - SLACK_SECONDS
        return msgspec.structs.replace(seen, last_board_at=scene.uptime) if board and not bad else seen

    def _open(self, seen: Gpus) -> Gpus:
        answer = self._child.ask(Open())
        if isinstance(answer, Library):
            return msgspec.structs.replace(seen, library=answer, refused=None)
        self._child.close()
        if isinstance(answer, Silence):
            return self._fell_silent(seen, answer, "nvmlInit")
        refused = answer if isinstance(answer, Refused) else Refused("nvmlInit", UNKNOWN)
        return msgspec.structs.replace(seen, library=None, refused=refused)

    def _read(self, seen: Gpus, until: float, asked_at: float, *, board: bool) -> Gpus:
        wanted = [each.gpu for each in seen.pci or () if each.is_ours and each.gpu not in seen.left_alone]
        self._first %= max(1, len(wanted))
        samples = {each.gpu: each for each in seen.samples}
        for gpu in wanted[self._first :] + wanted[: self._first]:
            if time.monotonic() > until:
                break
            answer = self._child.ask(Read(gpu, board))
            self._first += 1
            if isinstance(answer, Sample) and answer.failed == TIMEOUT:
                answer = Silence("the driver timed out", missed=True)
            if not isinstance(answer, Sample):
                silence = answer if isinstance(answer, Silence) else Silence("a strange answer", missed=False)
                seen = self._fell_silent(seen, silence, gpu)
                break
            answer = msgspec.structs.replace(answer, asked_at=asked_at)
            samples[gpu] = _newest(samples.get(gpu), answer)
        else:
            seen = msgspec.structs.replace(seen, misses=0, missed="")
        here = {each.gpu for each in seen.pci or ()}
        kept = tuple(samples[gpu] for gpu in sorted(samples) if gpu in here)
        return self._without_devices(msgspec.structs.replace(seen, samples=kept))

    def _fell_silent(self, seen: Gpus, silence: Silence, where: str) -> Gpus:
        self._child.close()
        if silence.missed:
            return msgspec.structs.replace(
                seen, library=None, misses=seen.misses + 1, missed=f"{where}: {silence.reason}"
            )
        return msgspec.structs.replace(seen, library=None, refused=Refused(silence.reason, ENDED))

    def _without_devices(self, seen: Gpus) -> Gpus:
        """When every GPU is unknown to NVML though the driver has them, begin anew (nvidia-docker #1730)."""
        if seen.samples and seen.driver and all(each.failed == UNKNOWN for each in seen.samples):
            self._child.close()
            return msgspec.structs.replace(seen, library=None, refused=Refused("every GPU", UNKNOWN))
        return seen


def _newest(before: Sample | None, sample: Sample) -> Sample:
    """Return the sample; of a GPU that cannot be read, what was known of it; the board as last read."""
    if before is None:
        return sample
    if sample.failed:
        return msgspec.structs.replace(before, failed=sample.failed)
    return msgspec.structs.replace(sample, board=sample.board or before.board)


def _others_have_come(seen: Gpus, library: Library) -> bool:
    """Whether the driver has GPUs that were not there when the library was opened."""
    return bool(set(seen.driver or ()) - set(library.gpus))
