"""Fault → recommendation: which repair the findings call for, why, and what people may approve. Pure.

One table leads from the first action of the findings (node checks, section 5) to the offer. The offer is
always an action that is registered and that the node's provider can carry out.
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
    """`wanted` is what the findings call for; `offered` is what people may approve now, None for nothing.

    `why` says why it is called for. `but` says why the offer differs, or why there is no offer.
    """

    wanted: Action
    offered: Action | None
    why: str
    but: str = ""


@dataclass(frozen=True, slots=True)
class OfferRule:
    """What people read when an action is called for, and what is offered when it cannot be carried out.

    `missing` says that this version lacks the action. `instead` is offered then, with `note` beside it.
    """

    why: str
    missing: str = ""
    instead: Action | None = None
    note: str = ""


OFFER_RULES: Final[Mapping[Action, OfferRule]] = {
    Action.NONE: OfferRule("No repair is called for."),
    Action.ASK: OfferRule("No repair is known to help with this, so a person has to look first."),
    Action.RESET_GPU: OfferRule(
        "The GPU needs a reset, the lightest repair that clears this fault.",
        "This version cannot reset a single GPU.",
        Action.REBOOT,
        "A reboot resets it too, and stops every pod on the node, not only those that use this GPU.",
    ),
    Action.REBOOT: OfferRule("The fault is in the running system's state; a reboot clears it."),
    Action.REPROVISION: OfferRule(
        "The node's disk or image is damaged; a clean image repairs it and clears local data.",
        "This version cannot reprovision a node, and a reboot would not repair the damage.",
    ),
    Action.FAILOVER: OfferRule(
        "This points to hardware that a restart seldom brings back; the work belongs on another node.",
        "This version cannot fail over to a spare.",
        Action.REBOOT,
        "A reboot keeps the node and may not help: if the fault comes back, the machine needs hands-on service.",
    ),
    Action.REMOVE: OfferRule(
        "The node has to leave the pool, and its hardware needs repair.",
        "This version cannot remove a node.",
    ),
}
"""First action → what people read, and what is offered in its place."""

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
    ("slurm", "slurm-drained"): "Somebody drained the node in Slurm; whoever set the drain lifts it.",
    (
        "slurm",
        "slurm-gres",
    ): "Slurm's configuration and the node disagree; jobs may be given GPUs that are gone.",
    ("agent", "silence"): "Nothing is known about the node until its agent reports again.",
}
"""What is special about a code. For any other code people read the sentence of the rule."""

VENDOR_DECISION: Final = ("xid", "154")
"""The finding in which the driver itself names the recovery. Of equal findings, it explains the recommendation."""

UNREACHABLE: Final = (
    "No pool in the configuration says how to reach the node's machine, so nothing can be offered."
)
"""Why nothing is offered for a node that no provider serves."""


def recommend(cause: Cause, findings: tuple[Finding, ...], kind: ProviderKind | None) -> Recommendation:
    """Return what to offer for `findings`; `kind` is the node's provider, None when nothing can act on it."""
    lead = leading(findings)
    wanted, rule = lead.action, OFFER_RULES[lead.action]
    why = _why(cause, lead, rule)
    if can_carry_out(wanted, kind):
        return Recommendation(wanted, wanted, why)
    if kind is None and (wanted in ACTIONS or rule.instead in ACTIONS):
        return Recommendation(wanted, None, why, UNREACHABLE)
    missing = rule.missing if wanted not in ACTIONS or kind is None else _incapable(wanted, kind)
    if rule.instead is not None and can_carry_out(rule.instead, kind):
        return Recommendation(wanted, rule.instead, why, f"{missing} {rule.note}")
    return Recommendation(wanted, None, why, missing)


def leading(findings: tuple[Finding, ...]) -> Finding:
    """Return the finding that calls for the heaviest repair; raises ValueError for none.

    The agent has judged the findings, also beside each other, so nothing is weighed against anything here.
    """
    return max(
        findings,
        key=lambda each: (each.action.rank, _names_recovery(each), -each.first_seen, each.key),
    )


def _names_recovery(finding: Finding) -> bool:
    return (finding.subsystem, finding.code) == VENDOR_DECISION and finding.action is not Action.ASK


def _incapable(wanted: Action, kind: ProviderKind) -> str:
    return f"The provider of the node's pool, {kind.name}, cannot {ACTIONS[wanted].capability} a machine."


def _why(cause: Cause, lead: Finding, rule: OfferRule) -> str:
    if _names_recovery(lead):
        return "The driver asks for this repair."
    if cause is Cause.AGENT and lead.code != "silence":
        return "The agent cannot see part of the node, so faults there would go unnoticed."
    return REASONS.get((lead.subsystem, lead.code), rule.why)
