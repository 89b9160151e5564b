"""Predicates about a node: does the approval still hold, is the node back, is it healthy. Pure.

Each returns None for yes, otherwise what is missing, for people to read.
"""

from dataclasses import dataclass
from datetime import timedelta

from checks.finding import Finding, Severity
from checks.report import HeldReport
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.records import Evidence
from reconciler.kube.objects import Node
from reconciler.repair.resource import PreState


@dataclass(frozen=True, slots=True)
class Missing:
    """Unknown, or not yet: waiting may help."""

    reason: str


@dataclass(frozen=True, slots=True)
class Void:
    """The node is not as approved: waiting does not help."""

    reason: str


def still_stands(
    evidence: Evidence, node: Node | None, held: HeldReport | None, stale_after: timedelta
) -> Missing | Void | None:
    """Return None if node, boot and findings are still those of the evidence, by a fresh report."""
    if node is None:
        return Void("the node is no longer in the cluster")
    if node.uid != evidence.node_uid:
        return Void("the node has registered again since the approval")
    if node.boot_id != evidence.boot_id:
        return Void("the node has booted since the approval")
    if held is None:
        return Missing("waits for a report of the node")
    if held.age_seconds > stale_after.total_seconds():
        return Missing("waits for a fresh report of the node")
    if held.report.boot_id != evidence.boot_id:
        return Void("the node has booted since the approval")
    every = (*held.report.findings, *held.report.blind_spots)
    named = [finding for finding in every if finding.key in evidence.findings]
    if evidence_digest(held.report.boot_id, named) != evidence.evidence_digest:
        gone = sorted(set(evidence.findings) - {finding.key for finding in named})
        return Void(f"the findings are not those approved{': gone is ' + ', '.join(gone) if gone else ''}")
    return None


def not_booted(node: Node | None, before: PreState) -> str | None:
    """Return what is missing after a restart: a new boot id, Ready, or some GPUs."""
    if node is None:
        return "the node is not registered"
    if node.boot_id in ("", before.boot_id):
        return "the node has not booted"
    if not node.ready:
        return "the node is not ready"
    if node.gpus != before.gpus:
        return f"the node offers {node.gpus} of {before.gpus} GPUs"
    return None


def not_verified(
    held: HeldReport | None, boot_id: str, gpus: int, younger_than: timedelta, stale_after: timedelta
) -> str | None:
    """Return why the node is not verified by a report from this boot that is younger than both limits."""
    if held is None or held.report.boot_id != boot_id:
        return "no report from the new boot"
    if held.age_seconds > min(younger_than, stale_after).total_seconds():
        return "no fresh report since the node is back"
    seen = held.report.inventory.gpus
    if seen is None:
        return "the agent cannot see the GPUs"
    if len(seen) != gpus:
        return f"the agent sees {len(seen)} of {gpus} GPUs"
    wrong = [each for each in (*held.report.findings, *held.report.blind_spots) if _serious(each)]
    return f"found after the boot: {', '.join(_named(each) for each in wrong)}" if wrong else None


def _serious(finding: Finding) -> bool:
    return finding.severity in (Severity.CRITICAL, Severity.UNKNOWN)


def _named(finding: Finding) -> str:
    return finding.summary or finding.key
