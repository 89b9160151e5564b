"""fs-readonly: a file system that the node writes to has become read-only (table 1.3)."""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host import mountinfo

ROOT = "root was writable"
"""Name of a reading: in this boot the root was writable. Image-based systems have it read-only throughout."""


def observe(context: CheckContext) -> CheckResult:
    """Judge the file system of each path that has to be writable; two paths on one are one symptom."""
    mounts = mountinfo.read(context.root)
    if mounts is None:
        return Unobservable("the node's mounts cannot be read")
    root = mounts.get("/")
    was_writable = ROOT in context.past or (root is not None and not root.read_only)
    watched = [*context.policy.expected.writable, *(["/"] if was_writable else [])]
    on = (mountinfo.holds(mounts, path) for path in watched)
    sick = {mount.path: mount for mount in on if mount is not None and mount.read_only}
    return Observation(
        symptoms=tuple(_symptom(each) for each in sick.values()), readings={ROOT: 1.0} if was_writable else {}
    )


def _symptom(mount: mountinfo.Mount) -> Symptom:
    return Symptom(
        code="fs-readonly",
        subsystem="filesystem",
        severity=Severity.CRITICAL,
        action=Action.REPROVISION,
        device=mount.path,
        summary=f"The file system at {mount.path} has become read-only, which the kernel does after errors.",
        evidence=f"{mount.source} on {mount.path} type {mount.kind} (ro)",
    )


CHECK = Check(
    name="fs-readonly",
    about="the file systems that the node writes to are writable",
    observe=observe,
    rule=DebounceRule(raise_polls=2, clear_polls=1),
)
