from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kube.kube import Kube
from tests.reconciler.site import Bot, Site, bot
from tests.reconciler.town import cluster


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with cluster(tmp_path_factory.mktemp("kube")) as running:
        yield running


@pytest.fixture(scope="session")
def the_bot() -> Iterator[Bot]:
    with bot() as running:
        yield running


@pytest.fixture
def site(kube: Kube, the_bot: Bot, tmp_path: Path) -> Site:
    the_bot.down = False
    return Site(kube, the_bot, tmp_path)
