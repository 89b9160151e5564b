"""The metrics of the bot, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The bot's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reports = Counter(
            "clusterwright_bot_reports", "Node reports by HTTP status.", ["status"], registry=self.registry
        )
        self.open_incidents = Gauge(
            "clusterwright_bot_open_incidents", "Incidents that are not closed.", registry=self.registry
        )
        self.moves = Counter(
            "clusterwright_bot_incident_moves",
            "Incidents by state entered.",
            ["state"],
            registry=self.registry,
        )
        self.denied = Counter(
            "clusterwright_bot_denied_clicks",
            "Clicks that decided nothing.",
            ["reason"],
            registry=self.registry,
        )
        self.commits = Counter(
            "clusterwright_bot_commits", "Events for Git by result.", ["result"], registry=self.registry
        )
        self.slack = Counter(
            "clusterwright_bot_slack_calls",
            "Slack calls by method and result.",
            ["method", "result"],
            registry=self.registry,
        )
        self.up = Gauge(
            "clusterwright_bot_dependency_up",
            "1 while a dependency answers.",
            ["dependency"],
            registry=self.registry,
        )
        self.post_delay = Histogram(
            "clusterwright_bot_told_seconds",
            "Seconds from the opening of an incident to its Slack message.",
            buckets=(0.25, 0.5, 1, 2, 5, 10, 30, 60, 300),
            registry=self.registry,
        )
        self.unknown_subsystems = Counter(
            "clusterwright_bot_unknown_subsystems",
            "Subsystems in new reports that the bot does not know; their findings count as the host's.",
            registry=self.registry,
        )
        self.rounds = Counter(
            "clusterwright_bot_rounds",
            "Runs of a loop that did not happen as planned: missed, failed, or still busy (overrun).",
            ["round", "kind"],
            registry=self.registry,
        )
