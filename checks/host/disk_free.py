"""disk-free: file systems that the node needs have space left (table 1.3)."""

import os

from checks.check import Check, CheckContext, CheckResult, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host.files import under
from checks.policy import HostLimits


def observe(context: CheckContext) -> CheckResult:
    """Judge the free space of each expected file system; two paths on one file system count once."""
    seen: dict[int, Symptom | None] = {}
    for path in context.policy.expected.disks:
        place = under(context.root, path)
        try:
            device, space = place.stat().st_dev, os.statvfs(place)
        except OSError:
            continue
        if space.f_blocks and device not in seen:
            total, free = space.f_blocks * space.f_frsize, space.f_bavail * space.f_frsize
            seen[device] = _judge(path, free, total, context.policy.host)
    if not seen:
        return Unobservable(f"none of {', '.join(context.policy.expected.disks)} can be read")
    return Observation(symptoms=tuple(filter(None, seen.values())))


def _judge(path: str, free: int, total: int, limits: HostLimits) -> Symptom | None:
    percent = 100 * free / total
    low = percent < limits.disk_free_percent or free < limits.disk_free_mb * 1e6
    if not low and percent >= limits.disk_clear_percent:
        return None
    return Symptom(
        code="disk-free",
        subsystem="disk",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=path,
        summary=f"The file system at {path} is nearly full.",
        evidence=f"{free / 1e9:.1f} GB of {total / 1e9:.1f} GB free ({percent:.1f} %)",
        only_holds=not low,
    )


CHECK = Check(name="disk-free", about="file systems that the node needs have space left", observe=observe)
