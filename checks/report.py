"""NodeReport: everything that one agent knows about its node now, as it posts it to the bot.

Every report carries the whole state. A lost report costs only time, and a repeated one changes nothing. Both
sides refuse unknown fields: a typo or a newer agent is an error, never a silent gap.
"""

import msgspec

from checks.finding import Finding

AUDIENCE = "clusterwright-bot"
"""Audience that the agent's projected ServiceAccount token must name and the bot must ask for."""

REPORT_PATH = "/v1/reports"
"""Where an agent posts its report."""

SILENCE_REPORTS = 3
"""Reports missed in a row before a node counts as silent (table 1.4)."""


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One GPU that the node sees. `address` is its PCI address in sysfs form, `serial` that of its board."""

    address: str
    uuid: str | None = None
    model: str | None = None
    serial: str | None = None


class Inventory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The hardware that the node sees; None where it could not be read."""

    gpus: tuple[Gpu, ...] | None


class NodeReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that is wrong on a node now.

    `boot_id` is the kernel's random boot id. `sequence` grows by one with each report of a boot and survives
    a restart of the agent. `sent_at` is Unix seconds by the node's clock (shown, never compared).
    `blind_spots` are findings about what the agent cannot see; a node with one does not count as healthy.
    """

    node: str
    boot_id: str
    sequence: int
    sent_at: float
    agent_version: str
    inventory: Inventory
    findings: tuple[Finding, ...]
    blind_spots: tuple[Finding, ...]


def encode(report: NodeReport) -> bytes:
    """Return the report as JSON."""
    return msgspec.json.encode(report)


def decode(body: bytes) -> NodeReport:
    """Return the report in `body`; raises msgspec.ValidationError naming the field that is wrong."""
    return msgspec.json.decode(body, type=NodeReport)


class HeldReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The newest report that the bot holds for a node, and its age in seconds by the bot's clock."""

    age_seconds: float
    report: NodeReport


def node_report_path(node: str) -> str:
    """Where the reconciler asks the bot for the newest report of `node`."""
    return f"/v1/nodes/{node}/report"


class ReportAccepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The bot's answer to a report that it accepted.

    `pool` is the pool that the node belongs to by the cluster's configuration, empty for none. `reset_boots`
    are the boots of this node that our repairs ended. None means that the bot does not know now. `holds` says
    that the next report may refer to this one. A newer bot may add fields.
    """

    accepted: int
    pool: str | None = None
    holds: bool = False
    reset_boots: tuple[str, ...] | None = None
