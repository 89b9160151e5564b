"""kill -9 of each program in the middle of the loop: it ends the same, with exactly one reset."""

from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.machines import Delays
from tests.lab.wiring import Timing
from tests.loop.driving import approvable, approve, assert_repaired_once, closed, open_thread

SLOW = Timing(machines=Delays(obey_seconds=4.0))
"""Time enough to kill a program between an order that was accepted and its effect."""


def test_an_agent_killed_once_its_fault_is_told_tells_it_again_as_the_same(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        cluster.break_gpu("gpu-01")
        cluster.wait("the thread", lambda: cluster.thread("gpu-01"))
        agent = cluster.node("gpu-01").agent
        agent.kill()
        agent.start()
        approve(cluster, approvable(cluster, "gpu-01"))
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_a_bot_killed_once_the_approval_is_in_git_records_it_once(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the approval", lambda: cluster.record("gpu-01", "repair-1.yaml"))
        cluster.bot.kill()
        cluster.bot.start()
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_a_reconciler_killed_between_an_order_and_its_effect_does_not_order_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1, timing=SLOW) as cluster:
        old_boot = cluster.node("gpu-01").boot_id
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the order", lambda: cluster.bmc.reset_posts("gpu-01"))
        cluster.reconciler.kill()
        assert (cluster.bmc.resets("gpu-01"), cluster.node("gpu-01").boot_id) == (0, old_boot)
        cluster.reconciler.start()
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")
