"""Parts that fail in the middle of the loop: nothing is lost, nothing is doubled."""

import time
from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.kube.fixture import require_real
from tests.lab.pods import guard_pods, run_job
from tests.loop.driving import approvable, approve, assert_repaired_once, closed, open_thread

AWAY_SECONDS = 8.0
"""Longer than every interval of the lab at which a program tries again."""


def test_a_reply_that_the_bmc_lost_is_not_asked_for_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        message = open_thread(cluster, "gpu-01")
        cluster.bmc.lose_next_reply("gpu-01")
        approve(cluster, message)
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_slack_away_for_a_while_delays_the_thread_and_no_more(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        cluster.slack.stop()
        cluster.break_gpu("gpu-01")
        cluster.wait("the incident in Git", lambda: cluster.record("gpu-01", "opened.yaml"))
        time.sleep(AWAY_SECONDS)
        cluster.slack.start()
        approve(cluster, approvable(cluster, "gpu-01"))
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_the_git_host_away_for_a_while_delays_the_record_and_no_more(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        message = open_thread(cluster, "gpu-01")
        cluster.github.stop()
        approve(cluster, message)
        cluster.wait("the wait to be shown", lambda: _says(cluster, "not yet recorded"))
        time.sleep(AWAY_SECONDS)
        assert _says(cluster, "not yet recorded")
        assert cluster.bmc.reset_posts("gpu-01") == 0
        cluster.github.start()
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_an_api_server_that_restarts_during_a_drain_is_waited_for(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1) as cluster:
        run_job(cluster.kube, "gpu-01", "train", labels={"app": "train"})
        guard = guard_pods(cluster.kube, {"app": "train"})
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the drain", lambda: cluster.step("gpu-01") == "drain")
        cluster.kube.restart(down_seconds=3.0)
        assert cluster.step("gpu-01") == "drain"
        assert cluster.bmc.reset_posts("gpu-01") == 0
        assert cluster.kube.request("DELETE", guard)[0] == 200
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def test_an_api_server_that_restarts_during_a_reset_is_waited_for(tmp_path: Path) -> None:
    require_real()
    with Cluster(tmp_path, nodes=1, kubernetes="real") as cluster:
        approve(cluster, open_thread(cluster, "gpu-01"))
        cluster.wait("the order", lambda: cluster.bmc.reset_posts("gpu-01"))
        assert cluster.step("gpu-01") == "reset"
        cluster.kube.restart(down_seconds=3.0)
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")


def _says(cluster: Cluster, text: str) -> bool:
    message = cluster.thread("gpu-01")
    return message is not None and text in str(message["blocks"])
