"""Finding: one thing that is wrong on a node, in the form everything downstream speaks.

A finding is level-triggered: it stands for as long as the fault stands, and it is identified by its `key`,
so that a thousand lines about one fault are one finding with a count.
"""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is for the node. `unknown` is a class of its own: a person looks, nothing acts."""

    INFO = "info"
    APP = "app"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """The repair that a finding suggests when it is seen alone; policy and people decide."""

    NONE = "none"
    ASK = "ask"
    RESET_GPU = "reset-gpu"
    REBOOT = "reboot"
    REPROVISION = "reprovision"
    FAILOVER = "failover"
    REMOVE = "remove"


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One fault of one device on one node in one boot.

    `check` names what found it (`xid`, `presence`, `log-blind`), `subsystem` and `code` what it is, `gpu` the
    PCI address in sysfs form or None. `count` is the number of occurrences and is never capped; `evidence` is
    the first text seen, at most `EVIDENCE_LIMIT` characters. `first_seen` and `last_seen` are Unix seconds.
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
        """Identity within one boot of one node: what makes two sightings the same fault.

        With both given, `device` is the part of the GPU (a link), and two links are two faults.
        """
        part = (self.device,) if self.gpu and self.device else ()
        return "/".join((self.check, self.code, self.gpu or self.device or "-", *part))


EVIDENCE_LIMIT = 4096
"""Characters of text kept as evidence (node-check rule K12); counts are never capped."""
