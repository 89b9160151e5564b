"""Stages for the bot's integration tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bot.harness import Stage, people
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
def long_stage(cluster_api: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with _slack() as slack:
        stage = Stage(cluster_api, slack, tmp_path_factory.mktemp("stage"))
        stage.start()
        yield stage
        stage.close()


@pytest.fixture
def stage(long_stage: Stage) -> Iterator[Stage]:
    """One bot for many tests: each brings nodes of its own and takes them away again."""
    long_stage.begin()
    yield long_stage
    long_stage.end()


@pytest.fixture
def set_stage(cluster_api: Kube, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """A bot of the test's own, with settings of its own."""
    made: list[Stage] = []
    with _slack() as slack:

        def make(**settings: object) -> Stage:
            stage = Stage(cluster_api, slack, tmp_path, **settings)
            made.append(stage)
            stage.start()
            stage.begin()
            return stage

        yield make
        for stage in made:
            stage.close()
