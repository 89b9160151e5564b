"""One real Slurm for all tests of a session; a machine where it cannot run says why."""

from collections.abc import Iterator

import pytest

from tests.lab.missing import require
from tests.lab.slurm.cluster import Slurm, problem


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    require(problem())
    with Slurm(nodes=3) as cluster:
        yield cluster
