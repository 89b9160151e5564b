"""limits and zombies: few zombies, processes and open files below the kernel's limits (table 1.3)."""

from pathlib import Path

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host import process
from checks.host.files import number, text

_RULE = DebounceRule(raise_polls=3, clear_polls=1)

SCAN_SECONDS = 600.0
"""How often all processes are counted: thousands of small files, a tenth of a second of one core."""


def observe(context: CheckContext) -> CheckResult:
    """Compare what is in use with the kernel's limits."""
    limits = context.policy.host
    used = {
        "processes": (_processes(context.root), limits.processes_percent),
        "open files": (_files(context.root), limits.files_percent),
    }
    if all(share is None for share, _ in used.values()):
        return Unobservable("/proc/loadavg and /proc/sys/fs/file-nr cannot be read")
    return Observation(
        symptoms=tuple(
            _symptom("limits", what, f"{share:.0f} % of the kernel's limit in use")
            for what, (share, limit) in used.items()
            if share is not None and share > limit
        )
    )


def observe_zombies(context: CheckContext) -> CheckResult:
    """Count the processes that have ended and that their parent has not reaped."""
    everything = process.every(context.root)
    if everything is None:
        return Unobservable("the node's processes cannot be listed")
    count = sum(each.state == "Z" for each in everything)
    limit = context.policy.host.zombies
    symptoms = (_symptom("zombies", "zombie processes", f"{count} of them"),) if count > limit else ()
    return Observation(symptoms=symptoms)


def _processes(root: Path) -> float | None:
    """Return the number of threads in percent of the kernel's limit."""
    tasks = (text(root / "proc/loadavg") or "").split(" ")
    most = [number(root / "proc/sys/kernel" / name) for name in ("pid_max", "threads-max")]
    given = [each for each in most if each]
    try:
        return 100 * int(tasks[3].partition("/")[2]) / min(given)
    except (IndexError, ValueError):
        return None


def _files(root: Path) -> float | None:
    fields = (text(root / "proc/sys/fs/file-nr") or "").split()
    try:
        return 100 * int(fields[0]) / int(fields[2])
    except (IndexError, ValueError, ZeroDivisionError):
        return None


def _symptom(code: str, what: str, evidence: str) -> Symptom:
    return Symptom(
        code=code,
        subsystem="limits",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=what,
        summary=f"The node has too many {what}; the kernel will refuse new ones.",
        evidence=evidence,
        rule=_RULE,
    )


CHECK = Check(name="limits", about="processes and open files are below the kernel's limits", observe=observe)

ZOMBIES = Check(
    name="zombies",
    about="few processes are zombies",
    observe=observe_zombies,
    every_seconds=SCAN_SECONDS,
)
