"""When a kernel log finding is over: good news ends it, or quiet does where the rules allow that (section 4).

A quiet spell ends no critical finding: those go with a new boot, or when the driver says that the GPU needs
nothing any more. It has to say so twice: by Xid 154 and, where it answers that, by NVML field 230.
"""

from collections.abc import Iterable, Mapping

from checks.finding import Action, Severity
from checks.kernel import recovery
from checks.kernel.event import Event
from checks.kernel.fold import Fault
from checks.kernel.recovery import Wish

BRIEF_QUIET_SECONDS = 600.0
"""Quiet after which an info or app finding is over (section 4)."""

QUIET_SECONDS = 1800.0
"""Quiet after which a warning that asks for nothing is over (table 1.3, kernel)."""

ANSWER_SECONDS = 180.0
"""Three polls without an answer about field 230: then it cannot be read, and Xid 154 alone decides (ours)."""

_NEWS = {("mlx5", "mlx5-link-up"), ("nic", "nic-link-up"), ("nfs", "nfs-ok"), ("xid", "162")}


def is_good_news(event: Event) -> bool:
    """Whether `event` says that faults may be over."""
    return (event.subsystem, event.code) in _NEWS or _is_all_clear(event)


def is_fault(event: Event) -> bool:
    """Whether `event` is something to keep, not only news about something else."""
    return event.event and not _is_all_clear(event)


def ends(news: Event, event: Event) -> bool:
    """Whether `news` ends the fault that `event` is."""
    if _is_all_clear(news):
        return event.subsystem == "xid" and news.gpu is not None and event.gpu == news.gpu
    match news.code:
        case "162":
            return event.code == "163" and event.gpu == news.gpu
        case "mlx5-link-up":
            return event.code == "mlx5-link-down" and event.device == news.device
        case "nic-link-up":
            return event.code == "nic-link-down" and event.device == news.device
        case "nfs-ok":
            return event.code == "nfs-timeout" and event.device == news.device
        case _:
            return False


def _is_all_clear(event: Event) -> bool:
    return event.code == "154" and event.rule == recovery.NONE.rule


class AllClear:
    """GPUs of which Xid 154 says that they need nothing any more, until the driver says so through NVML.

    `waiting` is when the line was logged, by GPU, in seconds since boot.
    """

    def __init__(self, waiting: Mapping[str, float]) -> None:
        self.waiting = dict(waiting)
        self._answers: dict[str, Wish] = {}

    def waits(self, event: Event, at: float) -> bool:
        """Take in an event; say whether it is an all-clear that waits for the driver's own word."""
        if event.code != "154" or event.gpu is None:
            return False
        self.waiting.pop(event.gpu, None)
        answer = self._answers.get(event.gpu)
        if answer is None or at - answer.at > ANSWER_SECONDS or not _is_all_clear(event):
            return False
        self.waiting[event.gpu] = at
        return True

    def hear(self, wishes: Mapping[str, Wish]) -> dict[str, float]:
        """Take in what the driver asks for; return the GPUs that are clear, and as of when."""
        self._answers.update(wishes)
        return self._end(
            gpu
            for gpu, at in self.waiting.items()
            if (wish := wishes.get(gpu)) and wish.at > at and wish.number == 0
        )

    def expire(self, at: float) -> dict[str, float]:
        """Return the GPUs that are clear because the driver answers no more, and as of when."""
        return self._end(
            gpu
            for gpu, since in self.waiting.items()
            if at - max(since, self._answers[gpu].at if gpu in self._answers else since) > ANSWER_SECONDS
        )

    def _end(self, gpus: Iterable[str]) -> dict[str, float]:
        return {gpu: self.waiting.pop(gpu) for gpu in tuple(gpus)}


def is_before(fault: Fault, clear: Mapping[str, float]) -> bool:
    """Whether the fault is over because its GPU was clear after it, `clear` saying as of when."""
    gpu = fault.event.gpu
    return fault.event.subsystem == "xid" and gpu is not None and fault.last_at <= clear.get(gpu, -1.0)


def is_quiet(fault: Fault, at: float) -> bool:
    """Whether the fault is over because nothing was heard of it for long enough."""
    quiet = quiet_seconds(fault.event)
    return quiet is not None and at - fault.last_at >= quiet


def quiet_seconds(event: Event) -> float | None:
    """Return the quiet after which the fault is over, None when quiet alone never ends it."""
    if event.severity in (Severity.INFO, Severity.APP):
        return BRIEF_QUIET_SECONDS
    if (
        event.severity is Severity.WARNING
        and event.action is Action.NONE
        and "link-down" not in str(event.code)
    ):
        return QUIET_SECONDS
    return None
