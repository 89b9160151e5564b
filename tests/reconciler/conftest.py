import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kube.fixture import require_real
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.cluster_harness import prepare
from tests.reconciler.harness import NodeHarness
from tests.reconciler.outside import Bot, bot


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    require_real()
    with start("real", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


@pytest.fixture(scope="session", params=["embedded", "real"])
def either(request: pytest.FixtureRequest) -> Kube:
    found: Kube = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def kube(embedded: Kube) -> Kube:
    return embedded


@pytest.fixture(scope="session")
def the_bot() -> Iterator[Bot]:
    with bot() as running:
        yield running


@pytest.fixture
def harness(
    kube: Kube, the_bot: Bot, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[NodeHarness]:
    the_bot.down = False
    made = NodeHarness(kube, the_bot, tmp_path, seed=zlib.crc32(request.node.name.encode()))
    yield made
    made.reports.close()
