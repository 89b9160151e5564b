import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.incidents.progress import Phase
from reconciler.repair.resource import Repair, read_repair, repair_name
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.site import CLEAN, START, Bot, Site
from tests.reconciler.town import TEMPO, Town, prepare


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


@pytest.fixture
def another(kube: Kube, the_bot: Bot, tmp_path: Path) -> Site:
    return Site(kube, the_bot, tmp_path)


def phase(site: Site) -> Phase | None:
    name = repair_name(site.node, site.record().action_id)
    raw = site.clients().reader.repair(name)
    found = None if raw is None else read_repair(raw)
    return found.status.phase if isinstance(found, Repair) else None


def ended(*sites: Site) -> Callable[[], bool]:
    return lambda: all((found := phase(site)) is not None and found.final for site in sites)


def test_an_approved_record_becomes_an_outcome_in_git(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    site.pod("daemon", owner="DaemonSet")
    with town.run():
        town.order(site)
        town.wait(town.outcomes)
    assert site.repair().status.phase is Phase.SUCCEEDED
    assert len(site.bmc.resets) == 1
    assert site.marks() == CLEAN
    message = town.host.show("log", "-1", "--format=%B", "incidents")
    assert message.splitlines()[0] == f"Reboot of {site.node}: succeeded"
    for trailer in (
        f"Incident: {site.incident}",
        f"Node: {site.node}",
        "Action: reboot",
        "Outcome: Succeeded",
    ):
        assert trailer in message.splitlines()


def test_a_record_that_is_refused_gets_an_outcome_and_no_repair(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    record = site.record()
    site.put(record, site.approval(record, expires_at=START))
    with capture_logs() as logs, town.run():
        town.host.commit("incidents", site.files)
        town.wait(town.outcomes)
        town.wait(lambda: any(each["event"] == "repair record not admitted" for each in logs))
        time.sleep(0.5)
    text = town.host.show("show", f"incidents:{town.outcomes()[0]}")
    assert "phase: Lapsed" in text
    assert "the approval lapsed at" in text
    assert phase(site) is None
    assert site.bmc.orders == []
    assert sum(each["event"] == "repair record not admitted" for each in logs) == 1
    assert town.host.show("rev-list", "--count", "incidents").strip() == "2"


def test_a_file_that_is_no_record_is_named_once_and_stops_nobody(
    site: Site, another: Site, tmp_path: Path
) -> None:
    town = Town([site, another], tmp_path)
    with capture_logs() as logs, town.run() as reconciler:
        town.host.commit("incidents", {another.path: b"kind: [\n"})
        town.order(site)
        town.wait(ended(site))
        town.wait(lambda: reconciler.unreadable)
        assert [each.path for each in reconciler.unreadable] == [another.path]
    named = [each for each in logs if each["event"] == "repair record refused"]
    assert [each["path"] for each in named] == [another.path]
    assert site.repair().status.phase is Phase.SUCCEEDED


def test_a_bmc_that_hangs_delays_nobody_else(site: Site, another: Site, tmp_path: Path) -> None:
    town = Town([site, another], tmp_path)
    town.config += b"\n"
    town.host.commit(
        "main",
        {"cluster.yaml": town.config.replace(b"verifyTimeout", b"maxInRepairPercent: 10, verifyTimeout")},
    )
    town.hangs[site.node] = threading.Event()
    more = [Site(site.kube, site.bot, tmp_path) for _ in range(18)]
    for each in more:
        each.patch_node({"metadata": {"labels": {"pool": f"pool-{site.node}"}}})
    with town.run():
        town.order(site)
        town.wait(lambda: phase(site) is Phase.RUNNING)
        town.order(another)
        town.wait(ended(another))
        assert not ended(site)()
        town.hangs[site.node].set()
        town.wait(ended(site))
    assert (phase(site), phase(another)) == (Phase.SUCCEEDED, Phase.SUCCEEDED)


def test_a_second_node_of_a_small_pool_waits_for_the_first(site: Site, another: Site, tmp_path: Path) -> None:
    town = Town([site, another], tmp_path)
    town.hangs[site.node] = threading.Event()
    with town.run():
        town.order(site)
        town.wait(lambda: phase(site) is Phase.RUNNING)
        town.order(another)
        said = f"waits: 1 of 2 nodes of the pool are in repair ({site.node}), 1 allowed"
        town.wait(lambda: phase(another) is not None and another.repair().status.message == said)
        assert another.repair().status.phase is Phase.PENDING
        assert another.marks() == CLEAN
        town.hangs[site.node].set()
        town.wait(ended(site, another))
    assert (phase(site), phase(another)) == (Phase.SUCCEEDED, Phase.SUCCEEDED)


def test_an_approval_that_lapses_while_its_repair_waits_ends_it(
    site: Site, another: Site, tmp_path: Path
) -> None:
    town = Town([site, another], tmp_path)
    town.hangs[site.node] = threading.Event()
    with town.run():
        town.order(site)
        town.wait(lambda: phase(site) is Phase.RUNNING)
        record = another.record(expires_at=town.clock() + timedelta(seconds=2))
        another.put(record)
        town.host.commit("incidents", another.files)
        town.wait(ended(another))
    assert another.repair().status.phase is Phase.LAPSED
    assert another.bmc.orders == []


def test_an_api_server_and_a_git_host_that_go_away_lose_nothing(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    town.hangs[site.node] = threading.Event()
    with town.run():
        town.order(site)
        town.wait(lambda: phase(site) is Phase.RUNNING)
        Path(town.host.url).rename(f"{town.host.url}-away")
        site.kube.pause()
        town.hangs[site.node].set()
        time.sleep(0.5)
        site.kube.resume()
        time.sleep(0.5)
        Path(f"{town.host.url}-away").rename(town.host.url)
        town.wait(town.outcomes)
    assert phase(site) is Phase.SUCCEEDED
    assert len(site.bmc.resets) == 1


def test_an_object_that_is_no_repair_is_named_once_and_left_alone(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    spec = {"recordPath": "p", "recordCommit": "c", "record": {"a": 1}}
    name = f"{site.node}-by-hand"
    site.clients().writer.create_repair(name, spec)
    with capture_logs() as logs, town.run():
        town.order(site)
        town.wait(ended(site))
    named = [each for each in logs if each["event"] == "repair object refused" and each["repair"] == name]
    assert len(named) == 1
    assert "status" not in site.kube.request("GET", f"/apis/clusterwright.dev/v1alpha1/repairs/{name}")[1]


def test_two_reconcilers_at_once_reset_once(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    rival = town.reconciler(replace(TEMPO, each_pass=timedelta(seconds=0.03)))
    thread = threading.Thread(target=rival.run)
    with town.run():
        thread.start()
        town.order(site)
        town.wait(ended(site))
        town.wait(town.outcomes)
    rival.stop()
    thread.join(30)
    assert phase(site) is Phase.SUCCEEDED
    assert len(site.bmc.orders) == 1
    assert site.marks() == CLEAN


def test_the_program_starts_from_its_settings_and_stops_when_told(site: Site, tmp_path: Path) -> None:
    town = Town([site], tmp_path)
    settings = tmp_path / "settings.toml"
    settings.write_text(f"""
cluster = "example"
[git]
url = "{town.host.url}"
mirror = "{tmp_path}/program.git"
backend = "git"
poll_seconds = 0.2
[kubernetes]
kubeconfig = "{site.kube.admin_kubeconfig}"
[reconciler]
bot_url = "{site.bot.url}"
bot_token_file = "{site.token_file}"
pass_seconds = 0.2
""")
    log = tmp_path / "log"
    with log.open("w") as errors:
        command = [sys.executable, "-m", "reconciler", "--config", str(settings)]
        program = subprocess.Popen(command, stderr=errors)
        try:
            town.wait(lambda: "configuration read" in log.read_text())
            program.send_signal(signal.SIGTERM)
            assert program.wait(20) == 0
        finally:
            program.kill()
            program.wait()
    assert '"event": "reconciler stopped"' in log.read_text()
    assert "Traceback" not in log.read_text()
