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


def ends(news: Event, event: Event) -> bool:
    """Whether `news` ends the fault that `event` is."""
    match news.subsystem, news.code:
        case "xid", "154" if news.rule == recovery.NONE.rule:
            return event.subsystem == "xid" and news.gpu is not None and event.gpu == news.gpu
        case "xid", "162":
            return event.code == "163" and event.gpu == news.gpu
        case "mlx5", "mlx5-link-up":
            return event.code == "mlx5-link-down" and event.device == news.device
        case "nic", "nic-link-up":
            return event.code == "nic-link-down" and event.device == news.device
        case "nfs", "nfs-ok":
            return event.code == "nfs-timeout" and event.device == news.device
        case _:
            return False


def is_only_news(event: Event) -> bool:
    """Whether `event` says that faults are over and is none itself."""
    return not event.event or (event.code == "154" and event.rule == recovery.NONE.rule)


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
