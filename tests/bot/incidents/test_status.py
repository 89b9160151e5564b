"""The cluster in numbers, from what the bot holds in memory."""

from datetime import timedelta

from bot.incidents.status import ClusterStatus, StatusReader, worst_first
from checks.finding import Action, Severity
from tests.bot.loop_harness import DETECTION, BotLoops, node
from tests.bot.samples import NOW, finding, incident


def test_before_anything_is_read_the_numbers_are_unknown() -> None:
    bot = BotLoops()
    reader = StatusReader(bot.store, bot.reports, DETECTION.report_interval)
    assert reader.status() == ClusterStatus("example", None, None, 0, ())


def test_a_node_reports_until_its_reports_are_stale() -> None:
    bot = BotLoops()
    bot.cluster.nodes_by_name["gpu-02"] = node("gpu-02", "uid-02")
    reader = StatusReader(bot.store, bot.reports, DETECTION.report_interval)
    bot.report(finding())
    found = reader.status()
    assert (found.nodes, found.ready, found.reporting) == (2, 2, 1)
    assert [each.id for each in found.incidents] == [bot.incident.id]
    assert reader.incident(bot.incident.id) == bot.incident
    assert reader.incident("gpu-01-ffffff") is None
    bot.now += timedelta(seconds=91)
    assert reader.status().reporting == 0


def test_trouble_is_named_with_its_dependency() -> None:
    bot = BotLoops()
    bot.store.report_trouble("slack", "timed out")
    assert StatusReader(bot.store, bot.reports, DETECTION.report_interval).status().trouble == (
        "slack: timed out",
    )


def test_the_worst_incident_comes_first_and_then_the_oldest() -> None:
    mild = incident(id="a", findings=(finding(severity=Severity.WARNING, action=Action.ASK),))
    late = incident(id="b", opened_at=NOW + timedelta(minutes=1))
    early = incident(id="c")
    assert [each.id for each in worst_first((mild, late, early))] == ["c", "b", "a"]
