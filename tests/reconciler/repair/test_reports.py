from pathlib import Path

import msgspec
import pytest

from reconciler.repair.reports import NodeReports
from reconciler.repair.step import ReportsUnavailableError
from tests.reconciler.harness import FAULT, OLD, NodeHarness
from tests.reconciler.outside import Bot


@pytest.fixture
def reports(harness: NodeHarness) -> NodeReports:
    return harness.context().reports


def test_the_newest_report_is_asked_for_with_our_token(
    harness: NodeHarness, reports: NodeReports, the_bot: Bot
) -> None:
    held = reports.newest(harness.node)
    assert held is not None
    assert (held.report.boot_id, held.report.findings) == (OLD, (FAULT,))
    assert the_bot.tokens[-1] == "Bearer example-token"
    harness.token_file.write_text("rotated\n")
    reports.newest(harness.node)
    assert the_bot.tokens[-1] == "Bearer rotated"


def test_a_node_without_report_has_none(reports: NodeReports) -> None:
    assert reports.newest("absent") is None


def test_a_bot_that_refuses_is_unknown(harness: NodeHarness, reports: NodeReports, the_bot: Bot) -> None:
    the_bot.down = True
    with pytest.raises(ReportsUnavailableError, match="the bot answered 503"):
        reports.newest(harness.node)


def test_a_bot_that_is_away_is_unknown(harness: NodeHarness) -> None:
    with pytest.raises(ReportsUnavailableError, match="the bot does not answer"):
        NodeReports("http://127.0.0.1:9", harness.token_file, None, 1).newest(harness.node)


def test_a_token_that_cannot_be_read_is_unknown(the_bot: Bot, tmp_path: Path) -> None:
    with pytest.raises(ReportsUnavailableError, match="the bot does not answer"):
        NodeReports(the_bot.url, tmp_path / "absent", None, 1).newest("gpu-01")


def test_a_report_of_another_node_is_unknown(
    harness: NodeHarness, reports: NodeReports, the_bot: Bot
) -> None:
    the_bot.reports["gpu-other"] = the_bot.reports[harness.node]
    with pytest.raises(ReportsUnavailableError, match=f"the bot answered for {harness.node}"):
        reports.newest("gpu-other")


def test_a_report_that_cannot_be_read_is_unknown(
    harness: NodeHarness, reports: NodeReports, the_bot: Bot
) -> None:
    the_bot.reports[harness.node] = msgspec.structs.replace(the_bot.reports[harness.node], age_seconds="old")
    with pytest.raises(ReportsUnavailableError, match="the bot's report cannot be read"):
        reports.newest(harness.node)
