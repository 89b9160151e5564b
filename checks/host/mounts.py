"""mounts: expected mounts are there and answer; several of one server are one finding (table 1.3).

A dead file server is never a reason to repair a node.
"""

from collections.abc import Mapping

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom, Unobservable
from checks.finding import Action, Severity
from checks.host import mountinfo
from checks.host.files import under
from checks.host.stat_probe import StatProbe

NETWORK = frozenset({"nfs", "nfs4", "lustre", "ceph", "beegfs", "gpfs", "wekafs", "cifs", "fuse.sshfs"})
"""Types of file systems that wait for a server: their mounts are probed even if the policy names none."""

PROBED_AT_ONCE = 32
"""Mounts probed in one run (ours); on a node with more of them the first ones by name."""


class MountsCheck:
    """The check, with the probes that hang."""

    def __init__(self) -> None:
        self._stat = StatProbe()

    def observe(self, context: CheckContext) -> CheckResult:
        """Probe every expected and every network mount."""
        mounts = mountinfo.read(context.root)
        if mounts is None:
            return Unobservable("the node's mounts cannot be read")
        limits, expected = context.policy.host, context.policy.expected.mounts
        missing = [_missing(path) for path in expected if path not in mounts]
        network = [path for path, mount in mounts.items() if mount.kind in NETWORK]
        probed = sorted({*network, *(path for path in expected if path in mounts)})[:PROBED_AT_ONCE]
        answers = self._stat.answers(
            {path: under(context.root, path) for path in probed}, limits.mount_seconds
        )
        hangs = _by_server({path: mounts[path].source for path, well in answers.items() if not well})
        rule = DebounceRule(raise_polls=limits.mount_polls, clear_polls=1)
        return Observation(
            symptoms=(*missing, *(_hanging(server, paths, rule) for server, paths in hangs.items()))
        )


def _by_server(sources: Mapping[str, str]) -> dict[str, list[str]]:
    servers: dict[str, list[str]] = {}
    for path, source in sources.items():
        server = source.partition(":/")[0] if ":/" in source else source
        servers.setdefault(server, []).append(path)
    return servers


def _missing(path: str) -> Symptom:
    return Symptom(
        code="mount-missing",
        subsystem="storage",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=path,
        summary=f"Nothing is mounted at {path}, where the policy expects a mount.",
    )


def _hanging(server: str, paths: list[str], rule: DebounceRule) -> Symptom:
    return Symptom(
        code="mount-hangs",
        subsystem="storage",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=server,
        summary=f"The mounts of {server} do not answer. The server is shared; repairing the node is no help.",
        evidence=", ".join(paths),
        rule=rule,
    )


CHECK = Check(
    name="mounts", about="expected and network mounts are there and answer", observe=MountsCheck().observe
)
