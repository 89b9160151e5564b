"""Which events are one fault: what a second event does to a first, and the other way round (K17, M1, M3, T6).

Pure rules over pairs of events on one node; `fold` applies them to what is open.
"""

import msgspec

from checks.finding import Action, Severity
from checks.kernel import nvlink5, recovery
from checks.kernel.catalogue import xids
from checks.kernel.event import Event, Verdict
from checks.kernel.kin import Mark, kind, place

DECISION_SECONDS = 10.0
"""An Xid 154 this near decides for the other Xids of its GPU (M1), and a companion is met within it (M3)."""

INCIDENT_SECONDS = 60.0
"""Lines this near on one node are one physical fault (T6)."""

_JOINS: dict[Mark, tuple[Mark, ...]] = {
    ("nvrm", "probe-failed"): (("nvrm", "gpu-lost"), ("nvrm", "rm-init-failed")),
    ("nvrm", "rm-init-failed"): (("nvrm", "gsp-init-failed"), ("nvrm", "gsp-fw-missing")),
    ("aer", "aer-fatal"): (("xid", "79"),),
    ("aer", "aer-surprise-down"): (("xid", "79"), ("aer", "aer-fatal")),
    ("aer", "aer-recovery-failed"): (("xid", "79"), ("aer", "aer-fatal")),
    ("aer", "aer-no-recovery"): (("xid", "79"), ("aer", "aer-fatal")),
    ("sxid", "20034"): (("xid", "79"),),
    ("lockup", "soft-lockup"): (("mlx5", "mlx5-cmd-timeout"),),
}
"""Event → events whose incident it joins within `INCIDENT_SECONDS` (section 3.7, T6)."""


def relatives(event: Event) -> tuple[Mark, ...]:
    """Return the marks of every event that the rules here can relate to `event`."""
    own = kind(event)
    joining = tuple(child for child, parents in _JOINS.items() if own in parents)
    return *_JOINS.get(own, ()), *joining, *place(event)


def absorbs(one: Event, other: Event) -> bool:
    """Whether `other` is the same fault as `one` and vanishes in it: a lost GPU with its Xid 79 (K17)."""
    return (
        one.subsystem == "xid"
        and one.code == "79"
        and other.code == "gpu-lost"
        and one.gpu is not None
        and one.gpu == other.gpu
    )


def decided(event: Event, decision: Event) -> Event:
    """Return `event` under the recovery action that the driver asked for near it (M1)."""
    if decision.gpu is None or decision.gpu != event.gpu or not _is_decidable(event):
        return event
    if decision.rule == recovery.NONE.rule:
        return event.judged(_NOT_NEEDED) if event.code == "109" else event
    if decision.severity is Severity.UNKNOWN:
        return event
    return event.judged(Verdict(decision.severity, decision.action, f"M1 {decision.rule}"))


def joined(event: Event, other: Event) -> Event:
    """Return `event` as the companion of `other`, unchanged when it is none; the verdict stays (M3).

    A network driver that times out while a processor is stuck is both: what hangs is in the kernel.
    """
    if (kind(event), kind(other)) == (("mlx5", "mlx5-cmd-timeout"), ("lockup", "soft-lockup")):
        return event.judged(WEDGED)
    if event.companion_of is not None or other.companion_of == event.code:
        return event
    if kind(other) in _JOINS.get(kind(event), ()):
        child = msgspec.structs.replace(event, companion_of=other.code)
        if event.code == "soft-lockup":
            return child.judged(WEDGED)
        if event.code == "aer-no-recovery":
            # What the parent's action cures is wider than what this line alone asks for.
            return msgspec.structs.replace(child, action=other.action)
        return child
    if _is_xid_companion(event, other):
        return msgspec.structs.replace(event, companion_of=other.code)
    return event


def _is_decidable(event: Event) -> bool:
    if (
        event.subsystem != "xid"
        or event.code in ("45", "154", "xid-unparsed")
        or event.companion_of is not None
    ):
        return False
    return event.severity is not Severity.INFO or event.code in nvlink5.CODES


def _is_xid_companion(event: Event, other: Event) -> bool:
    if event.subsystem != "xid" or other.subsystem != "xid" or event.gpu is None or event.gpu != other.gpu:
        return False
    row = xids().get(event.code or "")
    if row is None or other.code == event.code or other.code in (None, "xid-unparsed"):
        return False
    return other.code in row.companions or ("any" in row.companions and other.code not in ("45", "154"))


WEDGED = Verdict(Severity.CRITICAL, Action.REBOOT, "1.2 network driver timeout with a soft lockup")
"""The port may read ACTIVE all the while (table 1.2, nic-driver)."""

_NOT_NEEDED = Verdict(Severity.APP, Action.NONE, "M1 recovery state None")
