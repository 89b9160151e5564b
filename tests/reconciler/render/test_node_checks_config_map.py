"""The reconciler keeps the ConfigMap of the checks in line with Git, against an API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.render.node_checks import NAME
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.cluster_harness import ClusterHarness, prepare
from tests.reconciler.harness import NodeHarness
from tests.reconciler.outside import Bot

PATH = f"/api/v1/namespaces/clusterwright/configmaps/{NAME}"
CHECKS = """apiVersion: clusterwright.dev/v1alpha1
kind: NodeChecks
metadata: {name: example}
spec:
  default: {expected: {cpus: CPUS}}
"""


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


def written(kube: Kube) -> dict[str, object]:
    """Return each pool's policy as the API server has it."""
    status, found = kube.request("GET", PATH)
    return {name: json.loads(text) for name, text in found["data"].items()} if status == 200 else {}


def test_what_git_says_reaches_the_cluster_and_is_put_right_again(
    kube: Kube, the_bot: Bot, tmp_path: Path
) -> None:
    cluster = ClusterHarness([NodeHarness(kube, the_bot, tmp_path)], tmp_path)

    def says(expected: dict[str, int]) -> bool:
        return any(policy == {"expected": expected} for policy in written(kube).values())

    def commit(cpus: str) -> None:
        content = CHECKS.replace("CPUS", cpus).encode()
        cluster.host.commit("main", {"cluster.yaml": cluster.config, "node-checks.yaml": content})

    with cluster.run():
        cluster.wait(lambda: says({"gpus": 8}))
        commit("192")
        cluster.wait(lambda: says({"gpus": 8, "cpus": 192}))
        commit("many")
        kube.request("DELETE", PATH)
    commit("96")
    with cluster.run():
        cluster.wait(lambda: says({"gpus": 8, "cpus": 96}))
