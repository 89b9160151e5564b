"""The program as it is put together: what its settings say is what its loops do."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from reconciler.build import intervals
from reconciler.incidents.progress import Phase
from reconciler.render.node_checks import NAME
from reconciler.settings import ReconcilerSettings
from tests.reconciler.cluster_harness import ClusterHarness
from tests.reconciler.harness import FAULT, OLD, NodeHarness


def settings(git: dict[str, Any], own: dict[str, Any]) -> ReconcilerSettings:
    there = {"url": "/host.git", "mirror": "/mirror.git", "backend": "git"}
    table = {"bot_url": "http://127.0.0.1:9", "bot_token_file": "/token"}
    return ReconcilerSettings(cluster="example", git={**there, **git}, reconciler={**table, **own})


def test_what_is_known_goes_stale_after_three_intervals() -> None:
    found = intervals(
        settings(
            {"poll_seconds": 7, "timeout_seconds": 11}, {"report_interval_seconds": 5, "pass_seconds": 3}
        )
    )
    assert found.each_pass == timedelta(seconds=3)
    assert found.git_poll == timedelta(seconds=7)
    assert found.git_valid == timedelta(seconds=11 + 3 * 7)
    assert found.stale_after == timedelta(seconds=3 * 5)


WIRED = intervals(
    settings(
        {"poll_seconds": 0.1, "timeout_seconds": 1.7}, {"report_interval_seconds": 100, "pass_seconds": 0.1}
    )
)
"""Git is valid for 2 s and a report for 300 s."""


def message(cluster: ClusterHarness, harness: NodeHarness) -> str:
    raw = harness.context().reader.repair(f"{harness.node}-{harness.record().action_id}")
    return str(((raw or {}).get("status") or {}).get("message") or "")


def test_a_stale_report_holds_a_repair_back_and_a_fresh_one_lets_it_go_on(
    harness: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    harness.report(OLD, FAULT, age=301)
    with cluster.run(WIRED):
        cluster.order(harness)
        cluster.wait(lambda: message(cluster, harness) == "waits for a fresh report of the node")
        assert not harness.marks()[0]
        harness.report(OLD, FAULT, age=290)
        cluster.wait(lambda: harness.repair().status.phase.final)
    assert harness.repair().status.phase is Phase.SUCCEEDED


def test_a_git_that_cannot_be_read_any_more_holds_a_repair_back(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    # A pod that does not stop keeps the repair at its drain, until Git is known to be stale.
    harness.pod("train")
    harness.confirm_gone = lambda: None  # type: ignore[method-assign] # its kubelet is busy
    with cluster.run(WIRED):
        record = harness.record("train")
        harness.put(record)
        cluster.host.commit("incidents", harness.files)
        cluster.wait(lambda: "to stop" in message(cluster, harness))
        away = Path(f"{cluster.host.url}-away")
        Path(cluster.host.url).rename(away)
        time.sleep(WIRED.git_valid.total_seconds() + 0.5)
        NodeHarness.confirm_gone(harness)
        cluster.wait(lambda: "to stop" not in message(cluster, harness))
        assert message(cluster, harness) == "Git cannot be read"
        assert harness.bmc.orders == []
        away.rename(cluster.host.url)
        cluster.wait(lambda: harness.repair().status.phase.final)
    assert harness.repair().status.phase is Phase.SUCCEEDED


def test_a_configuration_that_is_refused_stops_no_repair(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "may-nothing"}}
    assert harness.kube.request("POST", "/api/v1/namespaces/clusterwright/serviceaccounts", body)[0] == 201
    cluster.applier = harness.kube.kubeconfig_for("may-nothing")
    with capture_logs() as logs, cluster.run(WIRED):
        cluster.order(harness)
        cluster.wait(lambda: message(cluster, harness))
        cluster.wait(lambda: harness.repair().status.phase.final)
    refused = [each["object"] for each in logs if each["event"] == "object not applied"]
    assert sorted(refused) == [NAME, "repairs.clusterwright.dev"]
    assert harness.repair().status.phase is Phase.SUCCEEDED
