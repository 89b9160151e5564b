"""The other end of an agent's reports."""

from collections.abc import Iterator

import pytest

from tests.checks.agent.harness import Bot


@pytest.fixture
def bot() -> Iterator[Bot]:
    """A server that takes reports as the bot does, ended with the test."""
    bot = Bot()
    bot.start()
    yield bot
    bot.stop()
