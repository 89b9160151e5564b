"""Witness: what NVML says beside the kernel log, and what that changes there (M1, M5, M6, 3.7)."""

from collections.abc import Sequence

from checks.finding import Action, Finding, Severity
from checks.kernel import companion, recovery
from checks.kernel.event import Event, Verdict
from checks.kernel.recovery import Wish

HANGS = frozenset({"119", "120"})
"""Xids of a firmware processor that stopped; with a driver that hangs too, no reset gets through (M6)."""

MEMORY = frozenset({"48", "172"})
"""Xids of memory errors; on a board whose SRAM is beyond its limit, a reset mends nothing (M5)."""

_REBOOT = Verdict(Severity.CRITICAL, Action.REBOOT, "M6 driver unresponsive")
_STUCK = Verdict(Severity.CRITICAL, Action.REBOOT, "3.7 hung-gpu-stack, driver unresponsive")
_FAILOVER = Verdict(Severity.CRITICAL, Action.FAILOVER, "M5 SRAM threshold")


def beside(event: Event, findings: Sequence[Finding]) -> Event:
    """Return the event as it is judged beside what the checks have found."""
    if event.code == "hung-gpu-stack" and any(_hangs(each) for each in findings):
        return event.judged(_STUCK)
    if event.subsystem != "xid":
        return event
    for each in findings:
        if each.code == "recovery-action":
            event = companion.decided(event, _as_xid(each.gpu, _verdict(each)))
    if event.code in MEMORY and any(_is_worn(each, event) for each in findings):
        return event.judged(_FAILOVER)
    if event.code in HANGS and any(_hangs(each) for each in findings):
        return event.judged(_REBOOT)
    return event


def needs_nothing(event: Event, wish: Wish) -> Event:
    """Return the event as it is judged once the driver, asked after it, says that its GPU needs nothing (M1).

    That decides only about what a job can have caused; it ends nothing, and other faults stay as they are.
    """
    if recovery.BY_NUMBER.get(wish.number) is not recovery.NONE:
        return event
    return companion.decided(event, _as_xid(event.gpu, recovery.NONE))


def _as_xid(gpu: str | None, verdict: Verdict) -> Event:
    """Return what the driver asks for through NVML as the Xid that would say the same."""
    return Event(code="154", subsystem="xid", gpu=gpu).judged(verdict)


def _verdict(finding: Finding) -> Verdict:
    return Verdict(finding.severity, finding.action, "field 230")


def _is_worn(finding: Finding, event: Event) -> bool:
    return finding.code == "sram-threshold" and finding.gpu is not None and finding.gpu == event.gpu


def _hangs(finding: Finding) -> bool:
    return finding.code == "driver-unresponsive" and finding.severity is Severity.CRITICAL
