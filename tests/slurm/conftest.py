"""One real Slurm for all tests of a session; a machine where it cannot run says why."""

import os
from collections.abc import Iterator

import pytest

from tests.lab.slurm.cluster import Slurm, problem


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    why = problem()
    if why and os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    if why:
        pytest.skip(why)
    with Slurm(nodes=3) as cluster:
        yield cluster
