"""The metrics of the bot, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The bot's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reports = self._counter("reports", "Node reports by HTTP status.", "status")
        self.open_incidents = self._gauge("open_incidents", "Incidents that are not closed.")
        self.moves = self._counter("incident_moves", "Incidents by state entered.", "state")
        self.denied = self._counter("denied_clicks", "Clicks that decided nothing.", "reason")
        self.commits = self._counter("commits", "Events for Git by result.", "result")
        self.slack = self._counter("slack_calls", "Slack calls by method and result.", "method", "result")
        self.up = self._gauge("dependency_up", "1 while a dependency answers.", "dependency")
        self.post_delay = Histogram(
            "clusterwright_bot_told_seconds",
            "Seconds from the opening of an incident to its Slack message.",
            buckets=(0.25, 0.5, 1, 2, 5, 10, 30, 60, 300),
            registry=self.registry,
        )
        self.unknown_subsystems = self._counter(
            "unknown_subsystems",
            "Subsystems in new reports that the bot does not know; their findings count as the host's.",
        )
        self.rounds = self._counter(
            "rounds",
            "Runs of a loop that did not happen as planned: missed, failed, or still busy (overrun).",
            "round",
            "kind",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"clusterwright_bot_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"clusterwright_bot_{name}", text, labels, registry=self.registry)
