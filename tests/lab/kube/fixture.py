"""Fixtures for tests against either back end; name this module in `pytest_plugins`.

`kube` is a running server of each back end in turn (session-scoped, so tests keep apart by unique names);
`embedded_kube` and `real_kube` are one of them. A real back end that is not built skips its tests with the
command that builds it; where CI is set it fails them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.kube.binaries import problem
from tests.lab.kube.real import RealKube
from tests.lab.kube.server import start
from tests.lab.missing import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.kube import Kube

REAL = frozenset({"real_kube", "real_server", "real"})
EITHER = frozenset({"kube", "server", "either", "watched"})
"""Fixtures of a session that give the real back end, and those that give each back end in turn."""


def require_real() -> None:
    """End the test that asks, unless the real back end can start."""
    require(problem())


@pytest.fixture(scope="session")
def embedded_kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """The embedded server of this session."""
    with start("embedded", tmp_path_factory.mktemp("embedded-kube")) as kube:
        yield kube


@pytest.fixture(scope="session")
def real_kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    """The real control plane of this session."""
    require_real()
    with RealKube(tmp_path_factory.mktemp("real-kube")) as kube:
        yield kube


@pytest.fixture(scope="session", params=["embedded", "real"])
def kube(request: pytest.FixtureRequest) -> Kube:
    """Each back end in turn."""
    found: Kube = request.getfixturevalue(f"{request.param}_kube")
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a folder that share a real control plane in one worker.

    Each worker would start one of its own for them, and an idle one takes a fifth of a core until the end.
    """
    for item in items:
        if _shares_the_real_one(item):
            item.add_marker(pytest.mark.xdist_group(f"real-{item.path.parent.name}"))


def _shares_the_real_one(item: pytest.Item) -> bool:
    named = set(getattr(item, "fixturenames", ()))
    chosen = getattr(item, "callspec", None)
    params = chosen.params if chosen else {}
    return bool(named & REAL) or any(params.get(each) == "real" for each in EITHER)
