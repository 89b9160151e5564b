"""kill -9 of each program at three moments of the loop: it ends the same, with exactly one reset.

Each program has a cluster of its own, and each moment a fresh node of it.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.lab.cluster import Cluster
from tests.lab.program import Program
from tests.loop.driving import approvable, approve, assert_repaired_once, closed

MOMENTS: dict[str, Callable[[Cluster, str], object]] = {
    "told": lambda cluster, node: cluster.thread(node),
    "ordered": lambda cluster, node: cluster.record(node, "repair-1.yaml"),
    "resetting": lambda cluster, node: cluster.bmc.reset_posts(node),
}
"""When to kill: the thread is there, the approval is in Git, the reset was sent."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("killed"), nodes=3 * len(MOMENTS)) as running:
        yield running


@pytest.mark.xdist_group("killed-agent")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_agent_goes_on_where_it_was(cluster: Cluster, moment: str) -> None:
    node = _node(0, moment)
    _survives(cluster, node, moment, cluster.node(node).agent)


@pytest.mark.xdist_group("killed-bot")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_bot_goes_on_where_it_was(cluster: Cluster, moment: str) -> None:
    _survives(cluster, _node(1, moment), moment, cluster.bot)


@pytest.mark.xdist_group("killed-reconciler")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_reconciler_goes_on_where_it_was(cluster: Cluster, moment: str) -> None:
    _survives(cluster, _node(2, moment), moment, cluster.reconciler)


def _node(victim: int, moment: str) -> str:
    return f"gpu-{1 + len(MOMENTS) * victim + list(MOMENTS).index(moment):02d}"


def _survives(cluster: Cluster, node: str, moment: str, program: Program) -> None:
    cluster.break_gpu(node)
    if moment == "told":
        _kill_and_restart(cluster, node, moment, program)
    approve(cluster, approvable(cluster, node))
    if moment != "told":
        _kill_and_restart(cluster, node, moment, program)
    closed(cluster, node)
    assert_repaired_once(cluster, node)


def _kill_and_restart(cluster: Cluster, node: str, moment: str, program: Program) -> None:
    cluster.wait(f"the moment {moment}", lambda: MOMENTS[moment](cluster, node), 60)
    program.kill()
    # A node that is being reset starts its agent by itself.
    if not (program is cluster.node(node).agent and moment == "resetting"):
        program.start()
