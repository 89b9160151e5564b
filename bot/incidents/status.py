"""The answers to `status`, `incidents` and `incident ID`, whoever asks: Slack, the web page or the CLI.

This is a read model: it reads the store and the reports, and changes nothing.
"""

from dataclasses import dataclass
from datetime import timedelta

from bot.incidents.correlate import is_silent
from bot.incidents.incident import Incident, worst
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The cluster in numbers.

    `nodes` and `ready` are None while Kubernetes has never been read. `reporting` counts the nodes whose
    reports are recent. `incidents` are the open ones, worst first; `trouble` names each dependency that fails.
    """

    cluster: str
    nodes: int | None
    ready: int | None
    reporting: int
    incidents: tuple[Incident, ...]
    trouble: tuple[str, ...] = ()


class StatusReader:
    """Answers from what the bot holds in memory. `report_interval` is the interval of the agents."""

    def __init__(self, store: IncidentStore, reports: ReportStore, report_interval: timedelta) -> None:
        self._store = store
        self._reports = reports
        self._interval = report_interval

    def status(self) -> ClusterStatus:
        """Return the cluster's status now."""
        store = self._store
        nodes, now, interval = store.nodes, store.now(), self._interval.total_seconds()
        reports = self._reports.all().values()
        return ClusterStatus(
            cluster=store.cluster,
            nodes=None if nodes is None else len(nodes),
            ready=None if nodes is None else sum(node.ready for node in nodes.values()),
            reporting=sum(not is_silent(each.received_at, now, interval) for each in reports),
            incidents=self.incidents(),
            trouble=tuple(f"{name}: {text}" for name, text in sorted(store.trouble.items())),
        )

    def incidents(self) -> tuple[Incident, ...]:
        """Return the open incidents, worst first."""
        return worst_first(self._store.incidents)

    def incident(self, incident_id: str) -> Incident | None:
        """Return the open incident of that id, None when there is none."""
        found = self._store.by_id.get(incident_id)
        return found.incident if found else None


def worst_first(incidents: tuple[Incident, ...]) -> tuple[Incident, ...]:
    """Return incidents in the order in which people should look at them: the worst, then the oldest."""
    return tuple(
        sorted(
            incidents,
            key=lambda each: (-worst(each.findings).severity.rank, each.opened_at, each.id),
        )
    )
