"""kill -9 of each program at three moments of the loop: it ends the same, with exactly one reset.

One cluster serves all nine, a fresh node each.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.lab.cluster import Cluster
from tests.loop.driving import approvable, approve, assert_repaired_once, closed

MOMENTS: dict[str, Callable[[Cluster, str], object]] = {
    "told": lambda cluster, node: cluster.thread(node),
    "ordered": lambda cluster, node: cluster.record(node, "repair-1.yaml"),
    "resetting": lambda cluster, node: cluster.bmc.reset_posts(node),
}
"""When to kill: the thread is there, the approval is in Git, the reset was sent."""

VICTIMS = ("agent", "bot", "reconciler")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("killed"), nodes=9) as running:
        yield running


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_killed_program_goes_on_where_it_was(cluster: Cluster, victim: str, moment: str) -> None:
    node = f"gpu-{1 + len(MOMENTS) * VICTIMS.index(victim) + list(MOMENTS).index(moment):02d}"
    program = cluster.node(node).agent if victim == "agent" else getattr(cluster, victim)

    def kill_and_restart() -> None:
        cluster.wait(f"the moment {moment}", lambda: MOMENTS[moment](cluster, node), 60)
        program.kill()
        if not (victim == "agent" and moment == "resetting"):
            program.start()

    cluster.break_gpu(node)
    if moment == "told":
        kill_and_restart()
    approve(cluster, approvable(cluster, node))
    if moment != "told":
        kill_and_restart()
    closed(cluster, node)
    assert_repaired_once(cluster, node)
