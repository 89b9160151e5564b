"""nvme: every NVMe drive is present and works (table 1.3)."""

from pathlib import Path

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host.files import names, text

CLASS = "sys/class/nvme"
"""One entry for each controller, with a file `state`: live, resetting, connecting, dead, …"""

LIVE = "live"

STUCK_SECONDS = 300.0
"""How long a drive may be resetting or connecting (ours); the driver's own limit is a minute."""


def observe(context: CheckContext) -> CheckResult:
    """Compare the drives with the policy, and with those that were live earlier in this boot."""
    found = names(context.root / CLASS)
    expected = context.policy.expected.nvme
    if found is None and names(context.root / "sys/class") is None:
        return Unobservable("sysfs cannot be read")
    drives = _drives(context.root / CLASS, found or [])
    alive = [name for name, state in drives.items() if state == LIVE]
    symptoms = [_dead(name, drives[name]) for name in drives if drives[name] != LIVE]
    symptoms += [_dead(name, "gone") for name in sorted({*context.past} - {*drives})]
    if expected is not None and len(drives) < expected and not symptoms:
        symptoms.append(_fewer(len(drives), expected))
    return Observation(symptoms=tuple(symptoms), readings=dict.fromkeys([*context.past, *alive], 1.0))


def _drives(place: Path, controllers: list[str]) -> dict[str, str]:
    """Return the state of each local drive by its serial number, which stays the same through a reset.

    A drive that vanishes between listing and reading is left to the next run.
    """
    drives = {}
    for name in controllers:
        state, kind = text(place / name / "state"), text(place / name / "transport")
        if state is not None and kind in ("pcie", None):
            drives[text(place / name / "serial") or name] = state
    return drives


def _dead(name: str, state: str) -> Symptom:
    return Symptom(
        code="nvme-missing" if state == "gone" else "nvme-dead",
        subsystem="nvme",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        device=name,
        summary=f"The NVMe drive {name} is {state}.",
        rule=None if state in ("gone", "dead") else DebounceRule(raise_seconds=STUCK_SECONDS),
    )


def _fewer(count: int, expected: int) -> Symptom:
    return Symptom(
        code="nvme-missing",
        subsystem="nvme",
        severity=Severity.CRITICAL,
        action=Action.FAILOVER,
        summary="The node shows fewer NVMe drives than its pool has.",
        evidence=f"{count} of {expected}",
    )


CHECK = Check(name="nvme", about="every NVMe drive is present and works", observe=observe)
