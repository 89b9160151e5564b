"""When a kernel log finding is over: good news ends it, or quiet does where the rules allow that (section 4).

A quiet spell ends no critical finding: those go with a new boot, or when the driver says that the GPU needs
nothing any more.
"""

from checks.finding import Action, Severity
from checks.kernel import recovery
from checks.kernel.event import Event

BRIEF_QUIET_SECONDS = 600.0
"""Quiet after which an info or app finding is over (section 4)."""

QUIET_SECONDS = 1800.0
"""Quiet after which a warning that asks for nothing is over (table 1.3, kernel)."""


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
