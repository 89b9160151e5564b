"""What must not happen does not: refused where people see it, and without a trace in Git."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from checks.report import AUDIENCE, REPORT_PATH, Inventory, NodeReport, encode
from tests.lab.cluster import Cluster
from tests.lab.kube.embedded_kube import EmbeddedKube
from tests.lab.pods import run_job
from tests.lab.wiring import APPROVER, CHANNEL, PEOPLE, SECOND_APPROVER, STRANGER, Timing
from tests.loop.driving import approvable, approve, closed, open_thread, press

pytestmark = pytest.mark.xdist_group("refused")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("refused"), nodes=6, slack_mode="http") as running:
        yield running


def test_a_stranger_is_told_no(cluster: Cluster) -> None:
    message = open_thread(cluster, "gpu-01")
    cluster.wait("the thread in Git", lambda: cluster.record("gpu-01", "thread.yaml"))
    before = cluster.records()
    press(cluster, message, STRANGER)
    assert "not an approver" in _told(cluster, STRANGER)
    assert _decisions(cluster, "gpu-01") == []
    assert cluster.records() == before


def test_a_forged_signature_is_not_heard(cluster: Cluster) -> None:
    message = open_thread(cluster, "gpu-02")
    before = len(cluster.slack.ephemerals(STRANGER))
    try:
        for tamper in ("wrong_secret", "old_timestamp", "reencoded_body", "unsigned"):
            cluster.slack.http.tamper = tamper
            assert press(cluster, message).status == 401
    finally:
        cluster.slack.http.tamper = None
    # A genuine click that comes later is answered: by then the forged ones would have had their effect.
    assert press(cluster, message, STRANGER).acked
    cluster.wait("an answer to the genuine click", lambda: len(cluster.slack.ephemerals(STRANGER)) > before)
    assert _decisions(cluster, "gpu-02") == []


def test_a_click_on_what_has_changed_since_decides_nothing(cluster: Cluster) -> None:
    message = open_thread(cluster, "gpu-03")
    run_job(cluster.kube, "gpu-03", "late-train", gpus=8)
    cluster.wait("the new pod in the thread", lambda: "late-train-0" in str(cluster.thread("gpu-03")))
    cluster.slack.click(CHANNEL, message["ts"], "approve", APPROVER, version=0)
    assert "older state" in _told(cluster, APPROVER)
    assert _decisions(cluster, "gpu-03") == []


def test_of_two_clicks_at_once_one_wins_and_the_other_is_told(cluster: Cluster) -> None:
    message = open_thread(cluster, "gpu-04")
    before = {user: len(cluster.slack.ephemerals(user)) for user in (APPROVER, SECOND_APPROVER)}
    shown = len(cluster.slack.versions(CHANNEL, message["ts"])) - 1
    for user in (APPROVER, SECOND_APPROVER):
        cluster.slack.click(CHANNEL, message["ts"], "approve", user, version=shown)
    closed(cluster, "gpu-04")
    assert _decisions(cluster, "gpu-04") == ["approval-1.yaml", "repair-1.yaml"]
    approval = cluster.record("gpu-04", "approval-1.yaml")
    assert approval is not None
    (winner,) = [user for user in before if PEOPLE[user][1] == approval["approver"]["email"]]
    (loser,) = before.keys() - {winner}
    assert len(cluster.slack.ephemerals(winner)) == before[winner]
    (told,) = cluster.slack.ephemerals(loser)[before[loser] :]
    assert PEOPLE[winner][0] in str(told)


def test_a_report_for_another_node_is_forbidden(cluster: Cluster) -> None:
    token = cluster.node("gpu-05").token_file.read_text()
    answer = _report(cluster, token, "gpu-06")
    assert answer.status_code == 403
    assert "gpu-06" in answer.json()["error"]
    assert _report(cluster, token, "gpu-05").status_code == 202


@pytest.mark.parametrize("fault", ["stale", "wrong-audience", "wrong-account", "garbage", "none"])
def test_a_token_that_is_not_the_agents_is_refused(cluster: Cluster, fault: str) -> None:
    tokens = {
        "stale": lambda: cluster.kube.token("clusterwright", "clusterwright-agent", (AUDIENCE,), seconds=-10),
        "wrong-audience": lambda: cluster.kube.token("clusterwright", "clusterwright-agent"),
        "wrong-account": lambda: cluster.kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,)),
        "garbage": lambda: "not.a.token",
        "none": lambda: "",
    }
    answer = _report(cluster, tokens[fault](), "gpu-05")
    assert answer.status_code == (403 if fault == "wrong-account" else 401)
    assert answer.json()["error"]
    assert cluster.record("gpu-05", "opened.yaml") is None


def test_a_token_for_another_audience_is_refused_by_the_bot_itself(cluster: Cluster) -> None:
    """Kubernetes may name no audiences, and then it did not look at them."""
    assert isinstance(cluster.kube, EmbeddedKube)
    token = cluster.kube.token("clusterwright", "clusterwright-agent")
    cluster.kube.faults.audience_unaware = True
    try:
        assert _report(cluster, token, "gpu-05").status_code == 401
    finally:
        cluster.kube.faults.clear()


def test_an_offer_that_has_lapsed_cannot_be_approved(tmp_path: Path) -> None:
    with Cluster(tmp_path, nodes=1, timing=Timing(offer_seconds=6.0)) as cluster:
        message = open_thread(cluster, "gpu-01")
        cluster.wait("the offer's end", lambda: "Nobody decided" in str(cluster.thread("gpu-01")))
        cluster.slack.click(CHANNEL, message["ts"], "approve", APPROVER, version=0)
        assert _told(cluster, APPROVER)
        assert _decisions(cluster, "gpu-01") == []
        cluster.slack.click(CHANNEL, message["ts"], "renew", APPROVER)
        approve(cluster, approvable(cluster, "gpu-01"))
        closed(cluster, "gpu-01")
        assert cluster.bmc.resets("gpu-01") == 1


def test_an_approval_that_lapsed_before_the_repair_began_repairs_nothing(tmp_path: Path) -> None:
    timing = Timing()
    timing = Timing(policy={**timing.policy, "approvalLifetime": "5s"})
    with Cluster(tmp_path, nodes=1, timing=timing) as cluster:
        message = open_thread(cluster, "gpu-01")
        cluster.reconciler.kill()
        approve(cluster, message)
        cluster.wait("the record", lambda: cluster.record("gpu-01", "repair-1.yaml"))
        time.sleep(6.0)
        cluster.reconciler.start()
        outcome = cluster.wait("the outcome", lambda: cluster.record("gpu-01", "outcome-1.yaml"))
        assert outcome["phase"] == "Lapsed"
        assert cluster.bmc.reset_posts("gpu-01") == 0
        assert not cluster.kubernetes_node("gpu-01")["spec"].get("unschedulable")
        assert "approve" in cluster.buttons(approvable(cluster, "gpu-01"))


def _report(cluster: Cluster, token: str, node: str) -> httpx.Response:
    report = NodeReport(
        node=node, boot_id=cluster.node(node).boot_id, sequence=1_000_000, sent_at=time.time(),
        agent_version="test", inventory=Inventory(gpus=()), findings=(), blind_spots=(),
    )  # fmt: skip
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.post(cluster.bot_url + REPORT_PATH, content=encode(report), headers=headers, timeout=10)


def _told(cluster: Cluster, user: str) -> str:
    answer: Any = cluster.wait(f"an answer to {user}", lambda: cluster.slack.ephemerals(user))
    return str(answer[-1])


def _decisions(cluster: Cluster, node: str) -> list[str]:
    names = [name.rsplit("/", 1)[1] for name in cluster.records() if f"/{node}-" in name]
    return sorted(name for name in names if name.split("-")[0] in ("approval", "rejected", "repair"))
