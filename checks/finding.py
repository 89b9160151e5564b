"""Finding: one thing that is wrong on a node, in the form that everything downstream reads.

Findings are level-triggered: a finding stands for as long as the fault does. Its `key` identifies it, so a
thousand lines about one fault are one finding with a count.
"""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is for the node. `unknown` goes to a person; nothing acts on it."""

    INFO = "info"
    APP = "app"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """Order from harmless (0) to worst: unknown stands between warning and critical."""
        return _SEVERITIES.index(self)


class Action(StrEnum):
    """The repair that a finding suggests when it is seen alone; policy and people decide."""

    NONE = "none"
    ASK = "ask"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    REPROVISION = "reprovision"
    FAILOVER = "failover"
    REMOVE = "remove"

    @property
    def rank(self) -> int:
        """Order from the lightest (0) to the one that disturbs the node most."""
        return _ACTIONS.index(self)


_SEVERITIES = (Severity.INFO, Severity.APP, Severity.WARNING, Severity.UNKNOWN, Severity.CRITICAL)
_ACTIONS = tuple(Action)


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One fault of one device on one node in one boot.

    `check` names the check that found it (`xid`, `presence`, `log-blind`). `subsystem` and `code` say what it
    is. `gpu` is the PCI address in sysfs form, or None. `count` is the number of occurrences and is never
    capped. `evidence` is the first text seen, at most `EVIDENCE_LIMIT` characters. `first_seen` and
    `last_seen` are Unix seconds.
    """

    check: str
    subsystem: str
    code: str
    severity: Severity
    action: Action
    gpu: str | None = None
    device: str | None = None
    count: int = 1
    first_seen: float
    last_seen: float
    summary: str = ""
    evidence: str = ""

    @property
    def key(self) -> str:
        """Identity within one boot of one node: two sightings with the same key are the same fault.

        When `gpu` and `device` are both set, `device` is a part of the GPU (a link). Two links are two
        faults.
        """
        part = (self.device,) if self.gpu and self.device else ()
        return "/".join((self.check, self.code, self.gpu or self.device or "-", *part))


EVIDENCE_LIMIT = 4096
"""Characters of text kept as evidence (node-check rule K12); counts are never capped."""
