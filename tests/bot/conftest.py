"""Bots as processes, and the API server that they share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bot.harness import BotProcess
from tests.bot.people import people
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.lab.manifests import apply_identities
from tests.lab.slack.emulator import Slack


@pytest.fixture(scope="session")
def cluster_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("bot-kube")) as kube:
        apply_identities(kube)
        yield kube


def _slack() -> Slack:
    emulator = Slack()
    people(emulator)
    return emulator


@pytest.fixture(scope="session")
def shared_bot(cluster_api: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BotProcess]:
    with _slack() as slack:
        bot = BotProcess(cluster_api, slack, tmp_path_factory.mktemp("bot"))
        bot.start()
        yield bot
        bot.close()


@pytest.fixture
def bot(shared_bot: BotProcess) -> Iterator[BotProcess]:
    """One bot for many tests: each brings nodes of its own and takes them away again."""
    shared_bot.begin()
    yield shared_bot
    shared_bot.end()


@pytest.fixture
def start_bot(cluster_api: Kube, tmp_path: Path) -> Iterator[Callable[..., BotProcess]]:
    """A bot of the test's own, with settings of its own."""
    made: list[BotProcess] = []
    with _slack() as slack:

        def make(**settings: object) -> BotProcess:
            bot = BotProcess(cluster_api, slack, tmp_path, **settings)
            made.append(bot)
            bot.start()
            bot.begin()
            return bot

        yield make
        for bot in made:
            bot.close()
