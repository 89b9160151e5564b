"""The whole loop on real parts: from a kernel line to a closed incident."""

import subprocess
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.kube.fixture import require_real
from tests.lab.pods import run_bare, run_job
from tests.lab.wiring import APPROVER, CHANNEL
from tests.loop.driving import approve, assert_repaired_once, closed, open_thread


@pytest.mark.parametrize(("kubernetes", "recorder"), [("real", "github"), ("embedded", "git")])
def test_a_fault_is_told_approved_repaired_and_closed(tmp_path: Path, kubernetes: str, recorder: str) -> None:
    if kubernetes == "real":
        require_real()
    with Cluster(tmp_path, nodes=2, kubernetes=kubernetes, recorder=recorder) as cluster:
        run_job(cluster.kube, "gpu-01", "train-1", gpus=8)
        run_bare(cluster.kube, "gpu-01", "notebook")
        old_boot = cluster.node("gpu-01").boot_id
        message = open_thread(cluster, "gpu-01")
        assert "train-1-0" in str(message["blocks"])
        assert "notebook" in str(message["blocks"])
        approve(cluster, message)
        closed(cluster, "gpu-01")
        assert_repaired_once(cluster, "gpu-01")
        assert cluster.node("gpu-01").boot_id != old_boot
        assert cluster.kube.request("GET", "/api/v1/namespaces/training/pods/notebook")[0] == 404
        assert cluster.record("gpu-02", "opened.yaml") is None
        _assert_git_tells_the_story(cluster)
        _assert_thread_tells_the_story(cluster, message["ts"])


def _assert_git_tells_the_story(cluster: Cluster) -> None:
    authors = cluster.git("log", "--reverse", "--format=%an <%ae>", "incidents").splitlines()
    assert authors.count("Example Approver <approver@example.com>") == 1
    form = "--format=%s|%(trailers:key=Approved-by,valueonly,separator=%x2C)"
    log = [line.split("|") for line in cluster.git("log", "--reverse", form, "incidents").splitlines()]
    assert [each for each in log if each[1]] == [
        ["Approve reboot of gpu-01", "Example Approver <approver@example.com>"]
    ]
    assert [log[0][0].split()[0], log[-2][0], log[-1][0].split()[0]] == [
        "Open", "Reboot of gpu-01: succeeded", "Close",
    ]  # fmt: skip
    check = subprocess.run(
        ["git", f"--git-dir={cluster.github.bare}", "fsck", "--strict"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert check.returncode == 0, check.stderr


def _assert_thread_tells_the_story(cluster: Cluster, ts: str) -> None:
    replies = [each["text"] for each in cluster.slack.replies(CHANNEL, ts)]
    told = "\n".join(replies).lower()
    for word in ("approved", "restarting the machine", "the boot is now", "verified", "repaired"):
        assert word in told, replies
    (root,) = [each for each in cluster.slack.messages(CHANNEL) if each["ts"] == ts]
    assert "Repaired" in root["text"]
    assert not cluster.buttons(root)


def test_status_answers_the_person_who_asked(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=2) as cluster:
        open_thread(cluster, "gpu-02")
        assert cluster.slack.slash(APPROVER, CHANNEL, "status").acked
        answer = cluster.wait("an answer to /cluster status", lambda: cluster.slack.ephemerals(APPROVER))
        assert "gpu-02" in str(answer[-1])
