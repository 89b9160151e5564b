import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.incidents.paths import outcome_path
from reconciler.incidents.progress import Phase
from reconciler.repair.resource import Repair, read_repair, repair_name
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.cluster_harness import INTERVALS, ClusterHarness, prepare
from tests.reconciler.harness import CLEAN, NEW, START, NodeHarness
from tests.reconciler.outside import Bot


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


@pytest.fixture
def another(kube: Kube, the_bot: Bot, tmp_path: Path) -> NodeHarness:
    return NodeHarness(kube, the_bot, tmp_path)


def phase(harness: NodeHarness) -> Phase | None:
    name = repair_name(harness.node, harness.record().action_id)
    raw = harness.context().reader.repair(name)
    found = None if raw is None else read_repair(raw)
    return found.status.phase if isinstance(found, Repair) else None


def ended(*harnesses: NodeHarness) -> Callable[[], bool]:
    return lambda: all((found := phase(harness)) is not None and found.final for harness in harnesses)


def test_an_approved_record_becomes_an_outcome_in_git(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    harness.pod("daemon", owner="DaemonSet")
    with cluster.run():
        cluster.order(harness)
        cluster.wait(cluster.outcomes)
    assert harness.repair().status.phase is Phase.SUCCEEDED
    assert len(harness.bmc.resets) == 1
    assert harness.marks() == CLEAN
    message = cluster.host.show("log", "-1", "--format=%B", "incidents")
    assert message.splitlines()[0] == f"Reboot of {harness.node}: succeeded"
    for trailer in (
        f"Incident: {harness.incident}",
        f"Node: {harness.node}",
        "Action: reboot",
        "Outcome: Succeeded",
    ):
        assert trailer in message.splitlines()


def test_a_record_that_is_refused_gets_an_outcome_and_no_repair(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    record = harness.record()
    harness.put(record, harness.approval(record, expires_at=START))
    with capture_logs() as logs, cluster.run():
        cluster.host.commit("incidents", harness.files)
        cluster.wait(cluster.outcomes)
        cluster.wait(lambda: any(each["event"] == "repair record not admitted" for each in logs))
        cluster.wait_passes(3, outcome_path(harness.path))
    text = cluster.host.show("show", f"incidents:{cluster.outcomes()[0]}")
    assert "phase: Lapsed" in text
    assert "the approval lapsed at" in text
    assert phase(harness) is None
    assert harness.bmc.orders == []
    assert sum(each["event"] == "repair record not admitted" for each in logs) == 1
    assert cluster.host.show("rev-list", "--count", "incidents").strip() == "2"


def test_a_file_that_is_no_record_is_named_once_and_stops_nobody(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    with capture_logs() as logs, cluster.run() as reconciler:
        cluster.host.commit("incidents", {another.path: b"kind: [\n"})
        cluster.order(harness)
        cluster.wait(ended(harness))
        cluster.wait(lambda: reconciler.controller.unreadable)
        assert [each.path for each in reconciler.controller.unreadable] == [another.path]
    named = [each for each in logs if each["event"] == "repair record refused"]
    assert [each["path"] for each in named] == [another.path]
    assert harness.repair().status.phase is Phase.SUCCEEDED


def test_a_bmc_that_hangs_delays_nobody_else(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    cluster.config += b"\n"
    cluster.host.commit(
        "main",
        {"cluster.yaml": cluster.config.replace(b"verifyTimeout", b"maxInRepairPercent: 10, verifyTimeout")},
    )
    cluster.hangs[harness.node] = threading.Event()
    more = [NodeHarness(harness.kube, harness.bot, tmp_path) for _ in range(18)]
    for each in more:
        each.patch_node({"metadata": {"labels": {"pool": f"pool-{harness.node}"}}})
    with cluster.run():
        cluster.order(harness)
        cluster.wait(lambda: phase(harness) is Phase.RUNNING)
        cluster.order(another)
        cluster.wait(ended(another))
        assert not ended(harness)()
        cluster.hangs[harness.node].set()
        cluster.wait(ended(harness))
    assert (phase(harness), phase(another)) == (Phase.SUCCEEDED, Phase.SUCCEEDED)


def test_a_second_node_of_a_small_pool_waits_for_the_first(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    cluster.hangs[harness.node] = threading.Event()
    with cluster.run():
        cluster.order(harness)
        cluster.wait(lambda: phase(harness) is Phase.RUNNING)
        cluster.order(another)
        said = f"waits: 1 of 2 nodes of the pool are in repair ({harness.node}), 1 allowed"
        cluster.wait(lambda: phase(another) is not None and another.repair().status.message == said)
        assert another.repair().status.phase is Phase.PENDING
        assert another.marks() == CLEAN
        cluster.hangs[harness.node].set()
        cluster.wait(ended(harness, another))
    assert (phase(harness), phase(another)) == (Phase.SUCCEEDED, Phase.SUCCEEDED)


def test_an_approval_that_lapses_while_its_repair_waits_ends_it(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    cluster.hangs[harness.node] = threading.Event()
    with cluster.run():
        cluster.order(harness)
        cluster.wait(lambda: phase(harness) is Phase.RUNNING)
        record = another.record(expires_at=cluster.clock() + timedelta(seconds=2))
        another.put(record)
        cluster.host.commit("incidents", another.files)
        cluster.wait(ended(another))
    assert another.repair().status.phase is Phase.LAPSED
    assert another.bmc.orders == []


def test_an_api_server_and_a_git_host_that_go_away_lose_nothing(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    cluster.hangs[harness.node] = threading.Event()
    with cluster.run():
        cluster.order(harness)
        cluster.wait(lambda: phase(harness) is Phase.RUNNING)
        Path(cluster.host.url).rename(f"{cluster.host.url}-away")
        harness.kube.pause()
        cluster.hangs[harness.node].set()
        time.sleep(0.5)
        harness.kube.resume()
        time.sleep(0.5)
        Path(f"{cluster.host.url}-away").rename(cluster.host.url)
        cluster.wait(cluster.outcomes)
    assert phase(harness) is Phase.SUCCEEDED
    assert len(harness.bmc.resets) == 1


def test_an_object_that_is_no_repair_is_named_once_and_left_alone(
    harness: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    spec = {"recordPath": "p", "recordCommit": "c", "record": {"a": 1}}
    name = f"{harness.node}-by-hand"
    harness.context().writer.create_repair(name, spec)
    with capture_logs() as logs, cluster.run():
        cluster.order(harness)
        cluster.wait(ended(harness))
    named = [each for each in logs if each["event"] == "repair object refused" and each["repair"] == name]
    assert len(named) == 1
    assert "status" not in harness.kube.request("GET", f"/apis/clusterwright.dev/v1alpha1/repairs/{name}")[1]


def test_two_reconcilers_at_once_reset_once(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    rival = cluster.reconciler(replace(INTERVALS, each_pass=timedelta(seconds=0.03)))
    thread = threading.Thread(target=rival.run)
    with cluster.run():
        thread.start()
        cluster.order(harness)
        cluster.wait(ended(harness))
        cluster.wait(cluster.outcomes)
    rival.stop()
    thread.join(30)
    assert phase(harness) is Phase.SUCCEEDED
    assert len(harness.bmc.orders) == 1
    assert harness.marks() == CLEAN


def test_the_program_starts_from_its_settings_and_stops_when_told(
    harness: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    settings = tmp_path / "settings.toml"
    settings.write_text(f"""
cluster = "example"
[git]
url = "{cluster.host.url}"
mirror = "{tmp_path}/program.git"
backend = "git"
poll_seconds = 0.2
[kubernetes]
kubeconfig = "{harness.kube.admin_kubeconfig}"
[reconciler]
bot_url = "{harness.bot.url}"
bot_token_file = "{harness.token_file}"
pass_seconds = 0.2
""")
    log = tmp_path / "log"
    with log.open("w") as errors:
        command = [sys.executable, "-m", "reconciler", "--config", str(settings)]
        program = subprocess.Popen(command, stderr=errors)
        try:
            cluster.wait(lambda: "configuration read" in log.read_text())
            program.send_signal(signal.SIGTERM)
            assert program.wait(20) == 0
        finally:
            program.kill()
            program.wait()
    assert '"event": "reconciler stopped"' in log.read_text()
    assert "Traceback" not in log.read_text()


# ---- by hand: everything happens within one pass


def repairs(harness: NodeHarness) -> list[str]:
    """Return the names of the Repairs of the node."""
    names = [each["metadata"]["name"] for each in harness.context().reader.repairs()]
    return [name for name in names if name.startswith(f"{harness.node}-")]


def test_of_two_repairs_of_a_small_pool_that_wait_in_one_pass_one_starts(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    cluster.order(harness)
    cluster.order(another)
    controller = cluster.controller_by_hand()

    assert controller.reconcile()
    assert (phase(harness), phase(another)) == (Phase.PENDING, Phase.PENDING)
    assert not controller.reconcile()

    assert sorted([str(phase(harness)), str(phase(another))]) == ["Pending", "Running"]
    waiting = harness if phase(harness) is Phase.PENDING else another
    assert waiting.repair().status.message.startswith("waits: 1 of 2 nodes of the pool are in repair (")
    assert waiting.marks() == CLEAN


def test_a_refusal_beside_a_repair_that_exists_is_the_repairs_own_to_record(
    harness: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    cluster.order(harness)
    controller = cluster.controller_by_hand()
    controller.reconcile()
    controller.reconcile()
    assert phase(harness) is Phase.RUNNING

    changed = cluster.config.replace(b"approver@example.com", b"other@example.com")
    cluster.host.commit("main", {"cluster.yaml": changed})
    cluster.controller_by_hand().reconcile()

    assert cluster.outcomes() == []
    assert phase(harness) is Phase.RUNNING


def test_a_record_that_the_api_server_refuses_keeps_no_other_back_and_is_logged_once(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    record = another.record()
    named = record.evidence.model_copy(update={"node": "Not_A_Name"})
    another.put(record.model_copy(update={"evidence": named}))
    cluster.host.commit("incidents", another.files)
    later = f"incidents/2026/12/{harness.incident}"
    harness.path, harness.directory = f"{later}/repair-1.yaml", later
    cluster.order(harness)
    controller = cluster.controller_by_hand()

    with capture_logs() as logs:
        for _ in range(3):
            controller.reconcile()

    assert phase(harness) is Phase.RUNNING
    (said,) = [each for each in logs if each["event"] == "repair not created"]
    assert (said["node"], "422" in said["reason"]) == ("Not_A_Name", True)


def test_a_repair_that_has_begun_goes_on_while_the_nodes_cannot_be_listed(
    harness: NodeHarness, another: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness, another], tmp_path)
    cluster.order(harness)
    first = cluster.controller_by_hand()
    first.reconcile()
    first.reconcile()
    assert len(harness.bmc.orders) == 1
    harness.boot(NEW)
    harness.beat()
    cluster.order(another)
    cluster.account = no_lists(harness.kube)
    controller = cluster.controller_by_hand()

    with capture_logs() as logs:
        controller.reconcile()
        controller.reconcile()

    assert phase(another) is Phase.PENDING
    assert any("/api/v1/nodes: 403" in str(each.get("reason")) for each in logs)
    assert harness.repair().status.new_boot_id == NEW


def no_lists(kube: Kube) -> Path:
    """Return the kubeconfig of an account that may do everything that a repair needs but list nodes."""
    rbac, name = "/apis/rbac.authorization.k8s.io/v1", "no-lists"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    assert kube.request("POST", "/api/v1/namespaces/clusterwright/serviceaccounts", account)[0] == 201
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},
        {"apiGroups": ["clusterwright.dev"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": ["", "policy"], "resources": ["pods", "poddisruptionbudgets"], "verbs": ["list"]},
    ]
    role = {"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    assert kube.request("POST", f"{rbac}/clusterroles", role)[0] == 201
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "clusterwright"}],
    }
    assert kube.request("POST", f"{rbac}/clusterrolebindings", binding)[0] == 201
    return kube.kubeconfig_for(name)


def test_a_plan_of_a_newer_version_whose_repair_exists_is_the_repairs_own_to_end(
    harness: NodeHarness, tmp_path: Path
) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    record = harness.record()
    newer = record.plan.model_copy(update={"version": 2})
    evidence = record.evidence.model_copy(update={"plan_digest": newer.digest})
    harness.order_record(record.model_copy(update={"plan": newer, "evidence": evidence}))
    cluster.host.commit("incidents", harness.files)
    with capture_logs() as logs:
        cluster.controller_by_hand().reconcile()
    assert phase(harness) is Phase.HELD
    assert len(cluster.outcomes()) == 1
    assert [each for each in logs if each["event"] == "repair record not admitted"] == []


def test_a_repair_that_waits_is_left_alone_until_it_is_due(harness: NodeHarness, tmp_path: Path) -> None:
    cluster = ClusterHarness([harness], tmp_path)
    now = [START + timedelta(seconds=1)]
    cluster.clock = lambda: now[0]  # type: ignore[method-assign] # time stands still until it is moved
    cluster.order(harness)
    controller = cluster.controller_by_hand()
    controller.reconcile()
    harness.bot.down = True
    looks = [len(harness.bot.tokens)]
    for seconds in (0, 4.9, 0.1):
        now[0] += timedelta(seconds=seconds)
        controller.reconcile()
        looks.append(len(harness.bot.tokens))
    assert [after - before for before, after in pairwise(looks)] == [1, 0, 1]
