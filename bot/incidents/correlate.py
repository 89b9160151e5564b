"""Findings → faults: which findings belong to one incident, and what silence means.

One physical fault is one incident (node-check rule T6): the findings of one cause on one node belong together,
and harmless lines of the same minute are shown with them as companions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from checks.finding import Action, Finding, Severity
from checks.report import SILENCE_REPORTS, Inventory, NodeReport
from reconciler.incidents.digests import digest
from reconciler.incidents.records import Cause

CAUSES: Final[Mapping[str, Cause]] = {
    **dict.fromkeys(
        ("xid", "sxid", "nvrm", "aer", "pcie", "gpu", "nvml", "presence", "ecc", "thermal", "nvlink"),
        Cause.GPU,
    ),
    **dict.fromkeys(("fabric", "fabric-manager", "peermem", "power", "recovery", "nvlink5"), Cause.GPU),
    **dict.fromkeys(("mlx5", "nic", "ib", "ethernet", "network"), Cause.NETWORK),
    **dict.fromkeys(("ext4", "xfs", "nvme", "md", "nfs", "filesystem", "disk", "storage"), Cause.STORAGE),
    **dict.fromkeys(("agent", "log", "silence"), Cause.AGENT),
    **dict.fromkeys(("slurm",), Cause.SLURM),
    **dict.fromkeys(
        ("boot", "clock", "cpu", "edac", "ghes", "mce", "memory", "limits", "service"), Cause.HOST
    ),
    **dict.fromkeys(("hung-task", "kernel", "lockup", "oom", "segfault"), Cause.HOST),
}
"""Subsystem of a finding → part at fault."""

TOGETHER_SECONDS: Final = 60.0
"""Lines of one cause within a minute are one fault (node-check rule T6)."""

_ID_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Fault:
    """The findings of one cause on one node: those that open an incident, and their companions.

    `boards` are the addresses and serial numbers of the affected GPUs, as far as the agent knows them.
    """

    cause: Cause
    findings: tuple[Finding, ...]
    companions: tuple[Finding, ...] = ()
    boards: tuple[tuple[str, str], ...] = ()


def opens_incident(finding: Finding) -> bool:
    """Whether a finding is worth a person's attention: critical, not understood, or a warning to act on."""
    match finding.severity:
        case Severity.CRITICAL | Severity.UNKNOWN:
            return True
        case Severity.WARNING:
            return finding.action is not Action.NONE
        case _:
            return False


def incident_id(cluster: str, node: str, node_uid: str, boot: tuple[Cause, str], ordinal: int) -> str:
    """Return the id of an incident; `boot` is its cause and boot id, `ordinal` the number of earlier ones.

    The same fault gives the same id, so the bot finds again what a crash interrupted.
    """
    cause, boot_id = boot
    return f"{node}-{digest([cluster, node_uid, cause.value, boot_id, ordinal])[:_ID_DIGITS]}"


def faults(report: NodeReport) -> dict[Cause, Fault]:
    """Return the faults of a report by cause; a cause with no finding that opens an incident is left out."""
    found = [(cause_of(each), each) for each in report.findings]
    found += [(Cause.AGENT, each) for each in report.blind_spots]
    return {
        cause: _with_boards(_fault(cause, [each for its, each in found if its is cause]), report.inventory)
        for cause in Cause
        if any(its is cause and opens_incident(each) for its, each in found)
    }


def cause_of(finding: Finding) -> Cause:
    """Return the part that the finding blames: the host for a subsystem that is not in `CAUSES`."""
    return CAUSES.get(finding.subsystem, Cause.HOST)


def unknown_subsystems(report: NodeReport) -> frozenset[str]:
    """Return the subsystems in a report that are not in `CAUSES`, as a newer agent may send them."""
    return frozenset(each.subsystem for each in report.findings if each.subsystem not in CAUSES)


def silence_fault(since: datetime, interval_seconds: float) -> Fault:
    """Return the fault of a node whose reports stopped at `since`.

    Its text names the moment, not the time that has passed, so it does not change while the node is silent.
    """
    at = since.timestamp()
    finding = Finding(
        check="silence",
        subsystem="agent",
        code="silence",
        severity=Severity.WARNING,
        action=Action.ASK,
        first_seen=at,
        last_seen=at,
        summary="the node's agent has stopped reporting, so nothing is known about the node's health",
        evidence=f"no report since {since:%Y-%m-%d %H:%M:%S} UTC; one is due every {interval_seconds:g} s",
    )
    return Fault(Cause.AGENT, (finding,))


def slurm_fault(findings: Iterable[Finding]) -> Fault | None:
    """Return the fault of a node according to Slurm's controller, None when it opens no incident.

    It is a cause of its own: no report of an agent holds these findings, so no repair can be bound to them.
    """
    fault = _fault(Cause.SLURM, findings)
    return fault if fault.findings else None


def is_silent(since: datetime, now: datetime, interval_seconds: float) -> bool:
    """Whether a node whose reports stopped at `since` counts as silent."""
    return is_stale((now - since).total_seconds(), interval_seconds)


def is_stale(age_seconds: float, interval_seconds: float) -> bool:
    """Whether a report of that age says nothing about its node any more."""
    return age_seconds > SILENCE_REPORTS * interval_seconds


def _fault(cause: Cause, findings: Iterable[Finding]) -> Fault:
    ordered = sorted(findings, key=lambda each: each.key)
    opening = tuple(each for each in ordered if opens_incident(each))
    others = tuple(
        each for each in ordered if not opens_incident(each) and any(_together(each, one) for one in opening)
    )
    return Fault(cause, opening, others)


def _with_boards(fault: Fault, inventory: Inventory) -> Fault:
    named = {each.gpu for each in fault.findings}
    known = ((gpu.address, gpu.serial) for gpu in inventory.gpus or () if gpu.address in named)
    return replace(fault, boards=tuple((address, serial) for address, serial in known if serial))


def _together(one: Finding, other: Finding) -> bool:
    starts, ends = max(one.first_seen, other.first_seen), min(one.last_seen, other.last_seen)
    return starts - ends <= TOGETHER_SECONDS
