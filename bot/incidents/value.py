"""What the bot's own files say: opened, thread, rejected, closed. Each is created once and never edited."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from pydantic import Field

from bot.incidents.incident import Cause, CloseReason
from checks.finding import Action, Finding, Severity
from reconciler.incidents.records import API_VERSION, Decider, Evidence, RecordValue

TS = r"^[0-9]{10}\.[0-9]{6}$"
"""A message's `ts`: text, never a number (as a float the reply is accepted and never shown)."""


class RecordedFinding(RecordValue):
    """A finding as it was when the incident opened."""

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

    @classmethod
    def of(cls, finding: Finding) -> "RecordedFinding":
        """Return the finding in the form of the files."""
        return cls(**msgspec.structs.asdict(finding))

    @property
    def finding(self) -> Finding:
        """The finding as everything else speaks of it."""
        return Finding(**self.model_dump())


class IncidentOpened(RecordValue):
    """The first file of an incident (`opened.yaml`).

    `boards` are the serial numbers of the GPUs in question, by address, as far as they were known.
    """

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["IncidentOpened"] = "IncidentOpened"
    incident: str
    cluster: str
    node: str
    node_uid: str
    boot_id: str
    cause: Cause
    opened_at: datetime
    findings: Annotated[tuple[RecordedFinding, ...], Field(min_length=1)]
    boards: dict[str, str] | None = None


class ThreadOpened(RecordValue):
    """Where people talk about the incident (`thread.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Thread"] = "Thread"
    incident: str
    channel: str
    ts: Annotated[str, Field(pattern=TS)]


class Rejection(RecordValue):
    """One person's refusal of the offered repair (`rejected-N.yaml`)."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Rejected"] = "Rejected"
    decision_id: str
    action: Action
    evidence: Evidence
    person: Decider
    reason: str
    rejected_at: datetime
    via: str


class IncidentClosed(RecordValue):
    """The last file of an incident (`closed.yaml`). `by` names the person who had to say so, if one had."""

    api_version: Literal["clusterwright.dev/v1alpha1"] = API_VERSION
    kind: Literal["Closed"] = "Closed"
    incident: str
    node: str
    why: CloseReason
    closed_at: datetime
    by: str = ""
