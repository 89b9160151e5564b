"""One GitHub a test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.github.server import GitHub


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with GitHub(tmp_path) as host:
        host.seed({"cluster.yaml": "kind: Cluster\n", "pools/gpu.yaml": "x: 1\n"})
        yield host
        assert host.store.git("fsck", "--strict", "--no-dangling") == ""
