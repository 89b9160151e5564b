"""cpu: every processor is online (table 1.3)."""

from checks.check import Check, CheckContext, CheckResult, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host.files import text

ONLINE = "sys/devices/system/cpu/online"
"""Ranges of processors, such as `0-95,97`."""


def observe(context: CheckContext) -> CheckResult:
    """Compare the processors that are online with the policy."""
    expected = context.policy.expected.cpus
    if expected is None:
        return Observation()
    online = count(text(context.root / ONLINE) or "")
    if online is None:
        return Unobservable(f"/{ONLINE} cannot be read")
    if online >= expected:
        return Observation()
    return Observation(
        symptoms=(
            Symptom(
                code="cpu-missing",
                subsystem="cpu",
                severity=Severity.CRITICAL,
                action=Action.FAILOVER,
                summary="The node has fewer processors online than its pool has.",
                evidence=f"{online} of {expected}",
            ),
        )
    )


def count(ranges: str) -> int | None:
    """Return how many processors `ranges` names, None when it is not understood."""
    total = 0
    try:
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            total += int(last or first) - int(first) + 1
    except ValueError:
        return None
    return total


CHECK = Check(name="cpu", about="every processor is online", observe=observe)
