"""API servers on which the manifests' identities are installed."""

from collections.abc import Iterator

import pytest

from tests.lab import manifests
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start


@pytest.fixture(scope="session", params=["embedded", "real"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Either back end."""
    with start(request.param, tmp_path_factory.mktemp(request.param)) as kube:
        manifests.apply_identities(kube)
        yield kube


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """The real back end, for what only it has: admission of pods and kubectl."""
    with start("real", tmp_path_factory.mktemp("kubectl")) as kube:
        manifests.apply_identities(kube)
        yield kube
