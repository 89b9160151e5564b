"""The open incidents in memory, and what Slack shows of them. The only place where they change."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog

from bot.incidents.approve import DecisionRequest
from bot.incidents.incident import Incident, IncidentEvent, State, transition
from bot.incidents.recommend import Recommendation, recommend
from bot.incidents.signal import Signal
from bot.incidents.view import IncidentView
from bot.metrics import Metrics
from reconciler.incidents.records import Cause
from reconciler.kube.objects import Node
from reconciler.repair.actions.registry import provider_for
from reconciler.repair.providers.provider import ProviderKind

if TYPE_CHECKING:
    from checks.finding import Finding
    from reconciler.config.schema import Config

log = structlog.get_logger("bot.lifecycle")


@dataclass(slots=True)
class PostedThread:
    """What Slack shows of an incident, as far as the bot knows.

    `ts` identifies the root message, None while it is not posted. `text_digest` and `state` describe the root
    as last sent; `keys` are the replies that were posted, None while they have to be looked up. `reposted` says
    that the root was deleted and posted once more, `lost` that Slack refuses this thread for good.
    """

    channel: str = ""
    ts: str | None = None
    text_digest: str = ""
    state: State | None = None
    keys: set[str] | None = None
    edited_at: datetime | None = None
    reposted: bool = False
    lost: bool = False


@dataclass(slots=True)
class OpenIncident:
    """One open incident, in memory since `since`.

    `pods_read_at` is when the pods of its node were last read for the offer, None when they have to be read
    again. `trouble` names, by dependency, what keeps the incident from going on. `request` is the click whose
    decision is not recorded yet. `lock` serialises the decisions about it.
    """

    incident: Incident
    since: datetime
    thread: PostedThread = field(default_factory=PostedThread)
    pods_read_at: datetime | None = None
    request: DecisionRequest | None = None
    trouble: dict[str, str] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class IncidentStore:
    """All open incidents, and what was last read of the cluster and its configuration.

    `nodes` is None while Kubernetes has never been read; `seen_since` is, by node UID, when the bot first saw
    the node, which is when its reports may begin to be missing. `reset_boots` are, by node, the boots that
    repairs ended, None while the repairs have never been read. `slurm` are Slurm's findings by node, None while
    Slurm has not answered. `clock` returns the time in UTC. Use it from the event loop's thread only.
    """

    def __init__(self, cluster: str, metrics: Metrics, clock: Callable[[], datetime]) -> None:
        self.cluster = cluster
        self.by_id: dict[str, OpenIncident] = {}
        self.closed: set[str] = set()
        self.nodes: dict[str, Node] | None = None
        self.seen_since: dict[str, datetime] = {}
        self.slurm: Mapping[str, tuple[Finding, ...]] | None = None
        self.reset_boots: Mapping[str, frozenset[str]] | None = None
        self.config: Config | None = None
        self.read_git = False
        self.trouble: dict[str, str] = {}
        self.changed = Signal()
        self.metrics = metrics
        self._clock = clock

    def now(self) -> datetime:
        """Return the time now (UTC)."""
        return self._clock()

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes of the cluster by what Kubernetes says now."""
        self.nodes = {node.name: node for node in nodes}
        now = self.now()
        self.seen_since = {node.uid: self.seen_since.get(node.uid, now) for node in self.nodes.values()}

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Every incident that is not closed, oldest first."""
        living = [each.incident for each in self.by_id.values() if each.incident.state is not State.CLOSED]
        return tuple(sorted(living, key=lambda each: (each.opened_at, each.id)))

    def find(self, node_uid: str, cause: Cause) -> OpenIncident | None:
        """Return the open incident of that cause on that node."""
        for open_incident in self.by_id.values():
            its = open_incident.incident
            if (its.node_uid, its.cause) == (node_uid, cause) and its.state is not State.CLOSED:
                return open_incident
        return None

    def in_repair(self, node_uid: str) -> bool:
        """Whether a repair of that node may be running."""
        return any(each.node_uid == node_uid and each.state.may_repair for each in self.incidents)

    def open(self, incident: Incident) -> OpenIncident:
        """Add an open incident."""
        open_incident = OpenIncident(incident, self._clock())
        self.by_id[incident.id] = open_incident
        self.metrics.open_incidents.set(len(self.incidents))
        self.changed.notify()
        return open_incident

    def remove(self, incident_id: str) -> None:
        """Remove an incident that is closed, recorded and shown in its thread."""
        self.by_id.pop(incident_id, None)
        self.closed.add(incident_id)

    def transition(self, open_incident: OpenIncident, event: IncidentEvent, **changes: Any) -> bool:
        """Apply an event; False when the state of the incident refuses it."""
        after = transition(open_incident.incident, event, **changes)
        if after is None:
            return False
        self.set_incident(open_incident, after)
        return True

    def set_incident(self, open_incident: OpenIncident, after: Incident) -> None:
        """Replace the incident, and log and count a change of its state."""
        before = open_incident.incident
        if after == before:
            return
        open_incident.incident = after
        self.changed.notify()
        if after.state is not before.state:
            log.info(
                "incident_moved",
                incident=after.id,
                node=after.node,
                was=before.state.value,
                now=after.state.value,
            )
            self.metrics.moves.labels(after.state.value).inc()
            self.metrics.open_incidents.set(len(self.incidents))

    def update(self, open_incident: OpenIncident, **changes: Any) -> None:
        """Change fields of the incident without a new revision."""
        self.set_incident(open_incident, replace(open_incident.incident, **changes))

    def pool_name(self, node: str) -> str | None:
        """Return the name of a node's pool: empty for none, None while it is not known."""
        known = (self.nodes or {}).get(node)
        if self.config is None or known is None:
            return None
        pool = self.config.pool_of(known.labels)
        return pool.name if pool else ""

    def provider(self, node: str) -> ProviderKind | None:
        """Return the provider of a node's pool, None when it has none or the pool is not known."""
        known = (self.nodes or {}).get(node)
        pool = self.config.pool_of(known.labels) if self.config and known else None
        return provider_for(pool) if pool else None

    def recommendation(self, incident: Incident) -> Recommendation:
        """Return what is recommended now."""
        return recommend(incident.cause, incident.findings, self.provider(incident.node))

    def view(self, open_incident: OpenIncident) -> IncidentView:
        """Return what people are shown."""
        return IncidentView(
            open_incident.incident,
            self.recommendation(open_incident.incident),
            " ".join(text for _, text in sorted(open_incident.trouble.items())),
        )

    def report_trouble(self, name: str, text: str) -> None:
        """Record that a dependency fails; an empty text says that it works again. Logged when that changes."""
        if self.trouble.get(name, "") == text:
            return
        if text:
            self.trouble[name] = text
            log.warning("dependency_failed", dependency=name, reason=text)
        else:
            self.trouble.pop(name, None)
            log.info("dependency_recovered", dependency=name)
        self.metrics.up.labels(name).set(0 if text else 1)
