"""kill -9 of each program at three moments of the loop: it ends the same, with exactly one reset.

Each program has a cluster of its own, and each moment a fresh node of it, one after the other.
"""

from collections.abc import Callable
from pathlib import Path

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


@pytest.mark.timeout(420)
@pytest.mark.parametrize("victim", ["agent", "bot", "reconciler"])
def test_a_killed_program_goes_on_where_it_was(tmp_path: Path, victim: str) -> None:
    with Cluster(tmp_path, nodes=len(MOMENTS)) as cluster:
        for node, moment in zip(cluster.nodes, MOMENTS, strict=True):
            program = cluster.node(node).agent if victim == "agent" else getattr(cluster, victim)
            _survives(cluster, node, moment, program)


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
