"""One bot in memory for each test."""

import pytest

from tests.bot.loop_harness import BotLoops
from tests.bot.loops.detection import Detection
from tests.bot.samples import finding


@pytest.fixture
def bot() -> BotLoops:
    """A bot whose only node is healthy."""
    return BotLoops()


@pytest.fixture
def asked(bot: BotLoops) -> BotLoops:
    """A bot that offers a reboot of gpu-01 in a thread that Git knows."""
    bot.report(finding())
    assert bot.files() == ["opened.yaml", "thread.yaml"]
    return bot


@pytest.fixture
def detection() -> Detection:
    """The detection alone, without other systems."""
    return Detection()
