"""Fault → recommendation: which repair is called for, why, and what of it this version can carry out.

One table from the first action of the findings (node checks, section 5) to what people are offered. What
is not built is said, never promised: `offered` is always an action that the reconciler has steps for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from checks.finding import Action, Finding
from reconciler.incidents.records import Cause
from reconciler.repair.actions.registry import ACTIONS, can_carry_out
from reconciler.repair.providers.provider import ProviderKind


@dataclass(frozen=True, slots=True)
class Recommendation:
    """`wanted` is what the findings call for, `offered` what people may approve now, None for nothing.

    `why` says why it is called for; `but` what is different about the offer, or why there is none.
    """

    wanted: Action
    offered: Action | None
    why: str
    but: str = ""


@dataclass(frozen=True, slots=True)
class OfferRule:
    """What becomes of a first action: `instead` is offered for it, with `but` said beside it."""

    instead: Action | None
    why: str
    but: str = ""


RUNGS: Final[Mapping[Action, OfferRule]] = {
    Action.NONE: OfferRule(None, "No repair is called for."),
    Action.ASK: OfferRule(None, "No repair is known to help with this, so a person has to look first."),
    Action.RESET_GPU: OfferRule(
        Action.REBOOT,
        "The GPU needs a reset, the lightest repair that clears this fault.",
        "This version cannot reset a single GPU. A reboot resets it too, and stops every pod on the node, "
        "not only those that use this GPU.",
    ),
    Action.REBOOT: OfferRule(
        Action.REBOOT, "The fault sits in the running system's state; a reboot clears it."
    ),
    Action.REPROVISION: OfferRule(
        None,
        "The node's disk or image is damaged; a clean image is what mends it, and it clears local data.",
        "This version cannot reprovision a node, and a reboot would meet the same damage.",
    ),
    Action.FAILOVER: OfferRule(
        Action.REBOOT,
        "This points to hardware that a restart seldom brings back; the work belongs on another node.",
        "This version cannot fail over to a spare. A reboot keeps the node and may not help: "
        "if the fault comes back, the machine needs hands.",
    ),
    Action.REMOVE: OfferRule(
        None,
        "The node has to leave the pool and be repaired as hardware.",
        "This version cannot remove a node.",
    ),
}
"""First action → what is offered for it."""

REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("xid", "48"): "A double-bit memory error: resetting the GPU puts a spare row in place of the bad one.",
    ("xid", "95"): "An uncontained memory error: only a reset makes the GPU's memory trustworthy again.",
    ("xid", "140"): "An unrecovered memory error: only a reset makes the GPU's memory trustworthy again.",
    ("xid", "64"): "A memory row could not be remapped; no reset or restart brings a spare row back.",
    ("xid", "79"): "The GPU has fallen off the bus; the job needs a whole node.",
    ("nvrm", "gpu-lost"): "The GPU has fallen off the bus; the job needs a whole node.",
    ("xid", "119"): "The GPU's system processor stopped answering the driver.",
    ("xid", "120"): "The GPU's system processor failed.",
    ("xid", "151"): "The vendor's own answer to this code is to restart the node.",
    ("nvrm", "rm-init-failed"): "The driver could not bring the GPU up; its state is in the kernel.",
    ("nvrm", "gsp-init-failed"): "The driver could not start the GPU's firmware; its state is in the kernel.",
    ("slurm", "slurm-drained"): "A drain is somebody's decision, and whoever set it lifts it.",
    (
        "slurm",
        "slurm-gres",
    ): "Slurm's configuration and the node disagree; jobs may be given GPUs that are gone.",
    ("agent", "silence"): "Nothing is known about the node until its agent reports again.",
}
"""What is special about a code; else the rung's own sentence is said."""

VENDOR_DECISION: Final = ("xid", "154")
"""The finding in which the driver itself names the recovery: of equal ones, it is the one to explain."""

_HEAVY: Final = tuple(Action)


def recommend(cause: Cause, findings: tuple[Finding, ...], kind: ProviderKind | None) -> Recommendation:
    """Return what to offer for `findings`; `kind` is what acts on the node's machine, None when nothing can."""
    lead = leading(findings)
    rung = RUNGS[lead.action]
    why = _why(cause, lead, rung)
    if rung.instead is None:
        return Recommendation(lead.action, None, why, rung.but)
    if rung.instead not in ACTIONS:
        return Recommendation(lead.action, None, why, f"This version cannot carry out {rung.instead.value}.")
    if not can_carry_out(rung.instead, kind):
        but = (
            "The node is in no pool whose machines can be reached for this, so nothing can be done from here."
        )
        return Recommendation(lead.action, None, why, but)
    return Recommendation(lead.action, rung.instead, why, rung.but)


def leading(findings: tuple[Finding, ...]) -> Finding:
    """Return the finding that calls for the heaviest repair; raises ValueError for none.

    The agent has judged the findings, also beside each other, so nothing is weighed against anything here.
    """
    return max(
        findings,
        key=lambda each: (_HEAVY.index(each.action), _names_recovery(each), -each.first_seen, each.key),
    )


def _names_recovery(finding: Finding) -> bool:
    return (finding.subsystem, finding.code) == VENDOR_DECISION and finding.action is not Action.ASK


def _why(cause: Cause, lead: Finding, rung: OfferRule) -> str:
    if _names_recovery(lead):
        return "The driver itself names this recovery."
    if cause is Cause.AGENT and lead.code != "silence":
        return "The agent cannot see part of the node, so faults there would go unnoticed."
    return REASONS.get((lead.subsystem, lead.code), rung.why)
