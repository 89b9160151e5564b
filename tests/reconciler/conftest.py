from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.act import Actor
from reconciler.apply.apply import PACKAGED, apply_definitions, definitions
from reconciler.connection import Connection
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.site import Bot, Site, bot


@pytest.fixture(scope="session")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        for name in ("clusterwright", "kube-node-lease"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            assert running.request("POST", "/api/v1/namespaces", body)[0] in (201, 409)
        connection = Connection(running.admin_kubeconfig, 10)
        apply_definitions(Actor(connection, "clusterwright"), definitions(PACKAGED))
        yield running


@pytest.fixture(scope="session")
def the_bot() -> Iterator[Bot]:
    with bot() as running:
        yield running


@pytest.fixture
def site(kube: Kube, the_bot: Bot, tmp_path: Path) -> Site:
    the_bot.down = False
    return Site(kube, the_bot, tmp_path)
