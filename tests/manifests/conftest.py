"""API servers on which the manifests' identities are installed."""

from collections.abc import Iterator

import pytest

from tests.lab import manifests
from tests.lab.kube.fixture import require_real
from tests.lab.kube.kube import Kube
from tests.lab.kube.real import RealKube
from tests.lab.kube.server import start


@pytest.fixture(scope="session", params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Kube:
    """Each back end in turn."""
    found: Kube = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """The embedded back end."""
    with start("embedded", tmp_path_factory.mktemp("embedded-manifests")) as kube:
        manifests.apply_identities(kube)
        yield kube


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """A real control plane of our own: what is deployed here would be in the way of other tests."""
    require_real()
    with RealKube(tmp_path_factory.mktemp("real-manifests")) as kube:
        manifests.apply_identities(kube)
        yield kube
