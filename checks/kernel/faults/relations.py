"""What relates to what: the one table of rules about kernel events on one node.

The rules are those of `docs/node-checks.md`: what replaces a verdict (M1), which event is part of another one
(K17, M3, T6, section 3.7), what NVML's evidence changes (M1, M5, M6), what recurrences mean (M4, sections
3.4, 3.6 and 3.7), and what ends a fault (section 4). `judgement` reads this table; no other module of this
package names a code.
"""

import re
from typing import Literal

import msgspec

from checks.finding import Action, Severity
from checks.kernel.parse.event import KernelVerdict
from checks.kernel.parse.nvlink import LINK_HARDWARE
from checks.kernel.parse.xid import RECOVERY_NONE, RECOVERY_VERDICTS

Kind = tuple[str, str]
"""Subsystem and code."""

DECISION_SECONDS = 10.0
"""A recovery action this near replaces the verdicts of its GPU (M1); Xids this near join each other (M3)."""

INCIDENT_SECONDS = 60.0
"""Lines this near on one node are one physical fault (T6)."""

WINDOW_SECONDS = 600.0
"""A fault stays open this long after its last line (K19); lines of one boot this near are one time."""

DAY_SECONDS = 86_400.0

# ---- M1: the driver names the recovery action of a GPU

RECOVERY_ACTION: Kind = ("xid", "154")
"""The Xid that names the recovery action: it replaces the verdicts of its GPU's other Xids (M1)."""

NOT_REPLACED = frozenset({("xid", "45"), RECOVERY_ACTION, ("xid", "xid-unparsed")})
"""Cleanup after another fault, the recovery action itself, and what nobody can read."""

LOWERED_BY_NONE = frozenset({("xid", "109")})
"""What a job can have caused; an action of None makes it the job's fault, and changes no other Xid."""

REPLACEMENTS = {
    each.rule: KernelVerdict(each.severity, each.action, f"M1 {each.rule}")
    for each in RECOVERY_VERDICTS - {RECOVERY_NONE}
}
"""Rule of a recovery action → verdict of the Xids that it replaces; an unreadable one replaces none."""

NOT_NEEDED = KernelVerdict(Severity.APP, Action.NONE, "M1 recovery state None")
"""Verdict of those Xids then."""

# ---- K17, T6 and section 3.7: which event is part of which

ABSORBED: dict[Kind, Kind] = {("nvrm", "gpu-lost"): ("xid", "79")}
"""Event → event of the same GPU within `INCIDENT_SECONDS` that it becomes one with, in either order (K17)."""

WEDGED = KernelVerdict(Severity.CRITICAL, Action.REBOOT, "1.2 network driver timeout with a soft lockup")
"""What hangs is in the kernel; the port may read ACTIVE all the while (table 1.2, nic-driver)."""


class Relation(msgspec.Struct, frozen=True):
    """What an event becomes beside another one within `INCIDENT_SECONDS`.

    `joins`: it names the other as its parent. `verdict` replaces its own one for good; without it the verdict
    stays (M3), but for the action when `takes_action`: what the parent's action cures is wider.
    """

    joins: bool = True
    verdict: KernelVerdict | None = None
    takes_action: bool = False


_JOINS = Relation()

RELATIONS: dict[tuple[Kind, Kind], Relation] = {
    (("nvrm", "probe-failed"), ("nvrm", "gpu-lost")): _JOINS,
    (("nvrm", "probe-failed"), ("nvrm", "rm-init-failed")): _JOINS,
    (("nvrm", "rm-init-failed"), ("nvrm", "gsp-init-failed")): _JOINS,
    (("nvrm", "rm-init-failed"), ("nvrm", "gsp-fw-missing")): _JOINS,
    (("aer", "aer-fatal"), ("xid", "79")): _JOINS,
    (("aer", "aer-surprise-down"), ("xid", "79")): _JOINS,
    (("aer", "aer-surprise-down"), ("aer", "aer-fatal")): _JOINS,
    (("aer", "aer-recovery-failed"), ("xid", "79")): _JOINS,
    (("aer", "aer-recovery-failed"), ("aer", "aer-fatal")): _JOINS,
    (("aer", "aer-no-recovery"), ("xid", "79")): Relation(takes_action=True),
    (("aer", "aer-no-recovery"), ("aer", "aer-fatal")): Relation(takes_action=True),
    (("sxid", "20034"), ("xid", "79")): _JOINS,
    (("lockup", "soft-lockup"), ("mlx5", "mlx5-cmd-timeout")): Relation(verdict=WEDGED),
    (("lockup", "soft-lockup"), ("mlx5", "mlx5-tx-timeout")): Relation(verdict=WEDGED),
    (("nvrm", "gpu-lost"), ("nvrm", "uvm-fatal")): _JOINS,
    (("mlx5", "mlx5-cmd-timeout"), ("lockup", "soft-lockup")): Relation(joins=False, verdict=WEDGED),
}
"""(event, other event) → what the event becomes. Xids of one GPU join by `companion_of` of `xid.csv` (M3)."""

SETTLED = frozenset(
    {WEDGED.rule, *(each.rule for each in REPLACEMENTS.values() if each.action is not Action.ASK)}
)
"""Rules whose verdicts further lines of the same fault do not change back to their own.

An action that leaves the repair to a person settles nothing: a worse line that follows is told as it is.
"""

FOLLOW_UPS = frozenset({("xid", "45"), RECOVERY_ACTION})
"""Xids that follow others: what joins any Xid does not join these."""

RELATED_AGAIN = frozenset({RECOVERY_ACTION, *(pair[0] for pair, each in RELATIONS.items() if each.verdict)})
"""Events whose every line may change their neighbours, not only the first one."""

# ---- M5, M6 and section 3.7: what NVML says beside the kernel log


class EvidenceRule(msgspec.Struct, frozen=True):
    """What a check's finding makes of events: `verdict`, or the finding's own for a recovery action (M1)."""

    finding: str
    kinds: frozenset[Kind]
    verdict: KernelVerdict | None
    same_gpu: bool = False
    severities: frozenset[Severity] = frozenset(Severity)


_HANGS = frozenset({Severity.CRITICAL})

EVIDENCE = (
    EvidenceRule("recovery-action", frozenset(), None, same_gpu=True),
    EvidenceRule(
        "sram-threshold",
        frozenset({("xid", "48"), ("xid", "172")}),
        KernelVerdict(Severity.CRITICAL, Action.FAILOVER, "M5 SRAM threshold"),
        same_gpu=True,
    ),
    EvidenceRule(
        "driver-unresponsive",
        frozenset({("xid", "119"), ("xid", "120")}),
        KernelVerdict(Severity.CRITICAL, Action.REBOOT, "M6 driver unresponsive"),
        severities=_HANGS,
    ),
    EvidenceRule(
        "driver-unresponsive",
        frozenset({("hung-task", "hung-gpu-stack")}),
        KernelVerdict(Severity.CRITICAL, Action.REBOOT, "3.7 hung-gpu-stack, driver unresponsive"),
        severities=_HANGS,
    ),
)
"""A later row beats an earlier one."""

EVIDENCE_CODES = frozenset(each.finding for each in EVIDENCE)

# ---- M4 and sections 3.4, 3.6, 3.7: what happens again


class Recurrence(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of what happens `times` times within `span_seconds`.

    `counted` by: `job`, application faults of one place under several jobs; `link`, faults of one link, over
    boots; `fault`, occurrences of one open fault; `rate`, more than `times` in each of `spans` spans in a
    row. `place` finds the part of the GPU in the text, and a text without it does not count. Only events with
    one of the verdicts `of` count, all when it is empty. `summary` replaces the catalogue's.
    """

    counted: Literal["job", "link", "fault", "rate"]
    times: int
    span_seconds: float
    verdict: KernelVerdict
    place: re.Pattern[str] | None = None
    of: frozenset[KernelVerdict] = frozenset()
    spans: int = 1
    summary: str = ""


_SEVERAL_JOBS = KernelVerdict(Severity.WARNING, Action.ASK, "M4 same place under several jobs")
_THIRD_OF_LINK = KernelVerdict(Severity.CRITICAL, Action.FAILOVER, "3.4 third time on one link in 7 days")

FINAL = frozenset({_THIRD_OF_LINK.rule})
"""Rules whose verdicts no recovery action replaces: the driver has not counted."""

_SWITCH_LINK = Recurrence(
    counted="link",
    times=2,
    span_seconds=DAY_SECONDS,
    verdict=KernelVerdict(Severity.WARNING, Action.ASK, "3.6 one link repeats in 24 h"),
)

RECURRENCES: dict[Kind, Recurrence] = {
    ("xid", "13"): Recurrence(
        counted="job",
        times=2,
        span_seconds=DAY_SECONDS,
        verdict=_SEVERAL_JOBS,
        place=re.compile(r"GPC ([0-9]{1,3}), TPC ([0-9]{1,3})"),
    ),
    ("xid", "31"): Recurrence(counted="job", times=2, span_seconds=DAY_SECONDS, verdict=_SEVERAL_JOBS),
    ("xid", "74"): Recurrence(
        counted="link", times=3, span_seconds=7 * DAY_SECONDS, verdict=_THIRD_OF_LINK, of=LINK_HARDWARE
    ),
    ("sxid", "20009"): _SWITCH_LINK,
    ("sxid", "20010"): _SWITCH_LINK,
    ("sxid", "20012"): _SWITCH_LINK,
    ("lockup", "soft-lockup"): Recurrence(
        counted="fault",
        times=3,
        span_seconds=600.0,
        verdict=KernelVerdict(Severity.CRITICAL, Action.REBOOT, "3.7 soft-lockup, third in 10 min"),
    ),
    ("aer", "aer-corrected"): Recurrence(
        counted="rate",
        times=60,
        span_seconds=60.0,
        spans=10,
        verdict=KernelVerdict(Severity.WARNING, Action.ASK, "3.7 aer-corrected, over 60 a minute for 10 min"),
        summary="PCIe errors are corrected so often that the link, its slot or its riser may be going bad.",
    ),
}
"""What is counted. A rate is over after as many spans below it in a row (ours)."""

# ---- section 4: what ends a fault

CLEARS: dict[Kind, tuple[Kind | None, Literal["gpu", "device"]]] = {
    RECOVERY_ACTION: (None, "gpu"),
    ("xid", "162"): (("xid", "163"), "gpu"),
    ("mlx5", "mlx5-link-up"): (("mlx5", "mlx5-link-down"), "device"),
    ("nic", "nic-link-up"): (("nic", "nic-link-down"), "device"),
    ("nfs", "nfs-ok"): (("nfs", "nfs-timeout"), "device"),
}
"""Good news → what it ends on the same GPU or device; a recovery action of None ends every Xid."""

BRIEF_QUIET_SECONDS = 600.0
"""Quiet after which an info or app finding is over (section 4)."""

QUIET_SECONDS = 1800.0
"""Quiet after which a warning that asks for nothing is over (table 1.3, kernel)."""

NEVER_QUIET = frozenset({("mlx5", "mlx5-link-down"), ("nic", "nic-link-down")})
"""Warnings that only good news ends."""
