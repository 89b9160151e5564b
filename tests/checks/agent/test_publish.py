"""When reports are sent: on change, every interval, and less and less often to a bot that does not answer."""

import math
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.agent.publish import CHANGE_SECONDS, FIRST_RETRY_SECONDS, PostResult, Publisher
from checks.agent.runtime import Join
from checks.agent.settings import AgentSettings
from checks.agent.ticker import JITTER, TICK_SECONDS, Ticker
from checks.report import Inventory, NodeReport
from tests.checks.agent.harness import Bot
from tests.lab.ports import free_ports

INTERVAL = 60.0


class OneThread:
    """Time in which nothing takes time but waits; a thread runs when the test says so.

    `at` maps seconds of uptime to what happens then.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.at: dict[float, Callable[[], None]] = {}
        self.run: Callable[[], None] = lambda: None

    def wall(self) -> float:
        return 1_796_000_000.0 + self.now

    def uptime(self) -> float:
        return self.now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        until = self.now + seconds
        while not event.is_set() and self.at and min(self.at) <= until:
            self.now = max(self.now, min(self.at))
            self.at.pop(min(self.at))()
        if not event.is_set():
            self.now = until
        return event.is_set()

    def start_thread(self, name: str, run: Callable[[], None]) -> Join:
        self.run = run
        return lambda _: None


class Line:
    """A publisher to `url`; `sent` are the seconds after the start at which it reported."""

    def __init__(self, directory: Path, url: str) -> None:
        self.token = directory / "token"
        self.token.write_text("t")
        settings = AgentSettings(
            node="gpu-01",
            bot_url=url,
            token_file=self.token,
            state_dir=directory,
            report_interval_seconds=INTERVAL,
        )
        self.runtime = OneThread()
        self.began = self.runtime.now
        self.sent: list[float] = []
        self.results: list[PostResult] = []
        ticker = Ticker(self.runtime, random.Random(1), TICK_SECONDS)
        self.publisher = Publisher(settings, self.compose, self.hear, ticker, self.runtime)

    def compose(self) -> NodeReport:
        self.sent.append(self.runtime.now - self.began)
        return NodeReport(
            node="gpu-01",
            boot_id="b1",
            sequence=len(self.sent),
            sent_at=0.0,
            agent_version="0.1.0",
            inventory=Inventory(gpus=None),
            findings=(),
            blind_spots=(),
        )

    def hear(self, _: NodeReport, result: PostResult) -> None:
        self.results.append(result)

    def go_on_for(self, seconds: float) -> None:
        """Run the reporting thread until so many seconds have passed."""
        self.runtime.at[self.began + seconds] = lambda: self.publisher.stop(0.0)
        self.publisher.start()
        self.runtime.run()

    @property
    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.sent, self.sent[1:], strict=False)]


def test_a_bot_that_does_not_answer_is_asked_less_and_less_often_up_to_the_interval(tmp_path: Path) -> None:
    line = Line(tmp_path, f"http://127.0.0.1:{free_ports()[0]}")
    line.go_on_for(1000.0)
    assert {each.status for each in line.results} == {None}
    expected = [min(FIRST_RETRY_SECONDS * 2**number, INTERVAL) for number in range(len(line.pauses))]
    assert expected[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    for pause, longest in zip(line.pauses, expected, strict=True):
        assert longest * (1 - JITTER) <= pause <= longest


def test_a_failure_that_stays_the_same_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line = Line(tmp_path, f"http://127.0.0.1:{free_ports()[0]}")
    for seconds, change in ((100.0, line.token.unlink), (200.0, lambda: line.token.write_text("t"))):
        line.runtime.at[line.began + seconds] = change
    line.go_on_for(300.0)
    assert len(line.results) > 9
    refused, missing, again = caplog.messages
    assert "no answer ConnectionRefusedError" in refused
    assert "cannot prepare a report" in missing
    assert again == refused


def test_a_bot_that_refuses_is_asked_less_and_less_often_and_a_good_answer_ends_that(
    tmp_path: Path, bot: Bot
) -> None:
    line = Line(tmp_path, bot.url)
    bot.status = 503

    def recover() -> None:
        bot.status = 202

    line.runtime.at[line.began + 20.0] = recover
    line.go_on_for(300.0)
    statuses = [each.status for each in line.results]
    assert statuses[:5] == [503] * 5, "at 0, 1, 3, 7 and 15 s, or a little earlier"
    assert set(statuses[5:]) == {202}
    # Afterwards at the last tick of each interval.
    assert all(INTERVAL / 2 < each <= INTERVAL + CHANGE_SECONDS for each in line.pauses[6:])
    assert len(statuses) > 8


def test_a_change_is_reported_at_once_and_a_flood_of_them_once_a_second(tmp_path: Path, bot: Bot) -> None:
    line = Line(tmp_path, bot.url)
    for number in range(30):
        line.runtime.at[line.began + 20.0 + number / 10] = line.publisher.change
    line.go_on_for(26.0)
    during = [each for each in line.sent if each >= 20.0]
    assert line.sent[0] == 0.0
    assert during == pytest.approx([20.0, 21.0, 22.0, 23.0])


def test_a_bot_that_was_told_of_nothing_new_hears_from_the_node_every_interval(
    tmp_path: Path, bot: Bot
) -> None:
    line = Line(tmp_path, bot.url)
    line.go_on_for(600.0)
    assert max(line.pauses) <= INTERVAL + CHANGE_SECONDS
    assert len(line.sent) <= math.ceil(600.0 / (INTERVAL - TICK_SECONDS)) + 1
