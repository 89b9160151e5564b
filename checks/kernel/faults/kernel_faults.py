"""What the kernel log says is wrong now: events come in as they are read, findings go out as reported.

An event gets its verdict when it enters: from its parser, from what is remembered of its GPU or link, and
from what stands beside it in the log and in NVML's findings.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from checks.finding import Finding
from checks.kernel.faults import judgement, relations
from checks.kernel.faults.fault import OpenFault
from checks.kernel.faults.open_faults import OpenFaults
from checks.kernel.faults.recurrence import GpuIdentities, GpuIdentity, RecurrenceMemory, Remembered
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.xid import RECOVERY_BY_NUMBER, RECOVERY_NONE, RecoveryRequest

ANSWER_SECONDS = 180.0
"""Three polls without an answer about field 230: then the kernel log alone decides (ours)."""


class SavedFaults(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be saved of one boot; `remembered` alone outlives it.

    `all_clear` are the GPUs of which the kernel log said that they need nothing any more while the driver has
    not said so through NVML yet, and at which second since boot.
    """

    faults: tuple[OpenFault, ...] = ()
    boards: tuple[GpuIdentity, ...] = ()
    all_clear: dict[str, float] = {}
    remembered: Remembered = Remembered()

    def of_next_boot(self) -> "SavedFaults":
        """What holds in another boot."""
        return SavedFaults(remembered=self.remembered)


class KernelFaults:
    """The open faults of one node in the boot `boot`. Times are seconds since boot, `shown` by wall clock."""

    def __init__(self, boot: str = "", kept: SavedFaults = SavedFaults()) -> None:  # noqa: B008 - frozen
        self._open = OpenFaults()
        self._identities = GpuIdentities(kept.boards)
        self._recurrences = RecurrenceMemory(boot, kept.remembered)
        self._all_clear = AllClear(kept.all_clear)
        for fault in kept.faults:
            self._open.restore(fault)

    @property
    def kept(self) -> SavedFaults:
        """Everything that a restart must not lose."""
        return SavedFaults(self.faults, self.boards, self._all_clear.waiting, self._recurrences.remembered)

    @property
    def faults(self) -> tuple[OpenFault, ...]:
        """What is open."""
        return tuple(self._open)

    @property
    def events(self) -> Iterator[KernelEvent]:
        """What is open, as events."""
        return (fault.event for fault in self._open)

    @property
    def boards(self) -> tuple[GpuIdentity, ...]:
        """What is known of the GPUs."""
        return self._identities.known

    def board(self, gpu: str) -> GpuIdentity:
        """Return what is known of the GPU at an address."""
        return self._identities.of(gpu)

    def take(self, event: KernelEvent, at: float, shown: float) -> tuple[bool, list[KernelEvent]]:
        """Take in one event; return whether a finding came of it, and the events that it ended."""
        if event.subsystem == "nvrm" and (board := self._identities.read(event.text)):
            self.learn(board)
        ended: list[KernelEvent] = []
        if event.kind in relations.CLEARS:
            ended = self._clear(event, at)
            if judgement.is_all_clear(event):
                return False, ended
        if not event.event:
            return False, ended
        if event.kind in relations.RECURRENCES:
            board = self._identities.of(event.gpu) if event.gpu else None
            event = self._recurrences.judge(event, board, at, shown)
        self._open.add(event, at, shown)
        return True, ended

    def learn(self, board: GpuIdentity) -> None:
        """Take in who a GPU is."""
        learnt = self._identities.learn(board)
        if learnt is not None and learnt[0].is_same(learnt[1]):
            self._recurrences.rename(*learnt)

    def hear(self, requests: Mapping[str, RecoveryRequest]) -> tuple[bool, list[KernelEvent]]:
        """Take in the recovery actions that NVML gives, by GPU.

        Return whether findings changed, and the events that ended.
        """
        content = {gpu: each.at for gpu, each in requests.items() if _needs_nothing(each)}
        changed = bool(content) and self._open.change(
            lambda fault: (
                judgement.needs_nothing(fault.event)
                if fault.last_at < content.get(fault.event.gpu or "", -1.0)
                else fault.event
            )
        )
        over = self._all_clear.hear(requests)
        ended = self._open.drop(lambda fault: _is_before(fault, over)) if over else []
        return changed or bool(ended), [fault.event for fault in ended]

    def take_evidence(self, findings: Iterable[Finding]) -> None:
        """Take in what the checks find now; some of it changes verdicts while it stands (M1, M5, M6)."""
        self._open.take_evidence(findings)

    def expire(self, at: float) -> bool:
        """Drop what quiet has ended; return whether there was any, or a verdict changed."""
        over = self._all_clear.expire(at) if self._all_clear.waiting else {}
        calmed = self._open.calm(at)
        return bool(self._open.drop(lambda fault: _is_over(fault, at, over))) or calmed

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings."""
        return tuple(map(OpenFault.finding, self._open))

    def _clear(self, news: KernelEvent, at: float) -> list[KernelEvent]:
        """Close what good news ends, unless the driver has to confirm it first."""
        if self._all_clear.waits(news, at) or not judgement.is_good(news):
            return []
        return [each.event for each in self._open.drop(lambda fault: judgement.ends(news, fault.event))]


class AllClear:
    """GPUs that need nothing any more by the kernel log, until the driver says so through NVML (section 4).

    `waiting` is when the line was logged, by GPU, in seconds since boot.
    """

    def __init__(self, waiting: Mapping[str, float]) -> None:
        self.waiting = dict(waiting)
        self._answers: dict[str, RecoveryRequest] = {}

    def waits(self, event: KernelEvent, at: float) -> bool:
        """Take in good news; say whether it is an all-clear that waits for the driver's own word."""
        if event.kind != relations.RECOVERY_ACTION or event.gpu is None:
            return False
        self.waiting.pop(event.gpu, None)
        answer = self._answers.get(event.gpu)
        if answer is None or at - answer.at > ANSWER_SECONDS or not judgement.is_all_clear(event):
            return False
        self.waiting[event.gpu] = at
        return True

    def hear(self, requests: Mapping[str, RecoveryRequest]) -> dict[str, float]:
        """Take in what NVML gives; return the GPUs that are clear, and as of when."""
        self._answers.update(requests)
        return self._end(
            gpu
            for gpu, at in self.waiting.items()
            if (request := requests.get(gpu)) and request.at > at and _needs_nothing(request)
        )

    def expire(self, at: float) -> dict[str, float]:
        """Return the GPUs that are clear because the driver no longer answers, and as of when."""
        return self._end(
            gpu
            for gpu, since in self.waiting.items()
            if at - max(since, self._answers[gpu].at if gpu in self._answers else since) > ANSWER_SECONDS
        )

    def _end(self, gpus: Iterable[str]) -> dict[str, float]:
        return {gpu: self.waiting.pop(gpu) for gpu in tuple(gpus)}


def _needs_nothing(request: RecoveryRequest) -> bool:
    return RECOVERY_BY_NUMBER.get(request.number) is RECOVERY_NONE


def _is_before(fault: OpenFault, clear: Mapping[str, float]) -> bool:
    """Whether the fault is over because its GPU was clear after it, `clear` saying as of when."""
    gpu = fault.event.gpu
    return fault.event.subsystem == "xid" and gpu is not None and fault.last_at <= clear.get(gpu, -1.0)


def _is_over(fault: OpenFault, at: float, clear: Mapping[str, float]) -> bool:
    """Whether the fault has been quiet for long enough, or its GPU is clear."""
    quiet = judgement.quiet_seconds(fault.event)
    return (quiet is not None and at - fault.last_at >= quiet) or bool(clear and _is_before(fault, clear))
