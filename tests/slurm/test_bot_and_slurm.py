"""What a real controller says, through the bot: incidents that open, stay while it is silent, and close."""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from bot.incidents.incident import Incident, State
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore
from bot.loops.detect import DetectionTimes, detect
from bot.loops.slurm import SlurmLoop, SlurmUnavailableError
from bot.metrics import Metrics
from bot.scontrol import scontrol_reader
from checks.report import Gpu, Inventory, NodeReport
from reconciler.incidents.records import Cause
from reconciler.kube.objects import Node
from tests.bot.samples import BOOT, NOW, config
from tests.lab.slurm.cluster import Slurm

pytestmark = pytest.mark.xdist_group("slurm")

DETECTION = DetectionTimes(
    report_interval=timedelta(seconds=30), clear_after=timedelta(minutes=5), offer_lifetime=timedelta(hours=1)
)


class Harness:
    """A bot whose nodes are those of the Slurm cluster, on a clock of the test's."""

    def __init__(self, slurm: Slurm, ask: Callable[[], str]) -> None:
        self.now, self.sequence = NOW, 0
        self.names = slurm.names
        self.store = IncidentStore("example", Metrics(), lambda: self.now)
        self.store.config, self.store.read_git = config(), True
        self.store.set_nodes(
            Node(
                name=name, uid=f"uid-{name}", boot_id=BOOT, ready=True, unschedulable=False, taints=(),
                labels={"pool": "h100"}, annotations={}, gpus=2, resource_version="1",
            )
            for name in slurm.names
        )  # fmt: skip
        self.reports = ReportStore(lambda: self.now)
        self.sync = SlurmLoop(self.store, self.reports, ask, time.monotonic)

    def look(self, times: int = 2, gpus: int = 2) -> None:
        for _ in range(times):
            self.now += timedelta(seconds=30)
            self.sequence += 1
            seen = tuple(Gpu(address=f"0000:{number:02x}:00.0") for number in range(gpus))
            for name in self.names:
                self.reports.accept(
                    NodeReport(
                        node=name, boot_id=BOOT, sequence=self.sequence, sent_at=0.0, agent_version="0.1.0",
                        inventory=Inventory(gpus=seen), findings=(), blind_spots=(),
                    )
                )  # fmt: skip
            asyncio.run(self.sync.look())
            detect(self.store, self.reports.all(), DETECTION)

    @property
    def incidents(self) -> dict[str, Incident]:
        return {each.node: each for each in self.store.incidents}


@pytest.fixture
def harness(slurm: Slurm) -> Iterator[Harness]:
    yield Harness(slurm, scontrol_reader("scontrol", Path(slurm.environment["SLURM_CONF"]), 10.0))
    slurm.scontrol("update", f"nodename={slurm.names[1]}", "state=undrain")


def test_a_foreign_drain_opens_one_incident_and_its_owner_closes_it(slurm: Slurm, harness: Harness) -> None:
    harness.look()
    assert harness.incidents == {}
    slurm.scontrol("update", f"nodename={slurm.names[1]}", "state=drain", "reason=bad disk")
    harness.look()
    incident = harness.incidents[slurm.names[1]]
    assert (incident.cause, incident.findings[0].code) == (Cause.SLURM, "slurm-drained")
    assert "bad disk" in incident.findings[0].summary
    assert harness.store.recommendation(incident).offered is None
    slurm.scontrol("update", f"nodename={slurm.names[1]}", "state=undrain")
    harness.look(times=15)
    assert harness.incidents == {}


def test_our_own_drain_opens_nothing(slurm: Slurm, harness: Harness) -> None:
    slurm.scontrol("update", f"nodename={slurm.names[1]}", "state=drain", "reason=clusterwright:a1b2 Xid 79")
    harness.look()
    assert harness.incidents == {}


def test_gpus_that_slurm_does_not_know_of_are_told_on_every_node(slurm: Slurm, harness: Harness) -> None:
    harness.look(gpus=1)
    assert {each.findings[0].code for each in harness.incidents.values()} == {"slurm-gres"}
    assert set(harness.incidents) == set(slurm.names)


def test_a_controller_that_does_not_answer_closes_nothing_and_is_trouble(slurm: Slurm) -> None:
    answers = [True]

    def ask() -> str:
        if not answers[0]:
            raise SlurmUnavailableError("scontrol: no answer in 10 s")
        return slurm.scontrol("-o", "show", "nodes").replace("State=IDLE", "State=DOWN")

    harness = Harness(slurm, ask)
    harness.look()
    assert {each.state for each in harness.incidents.values()} == {State.OPEN}
    answers[0] = False
    harness.look(times=15)
    assert set(harness.incidents) == set(slurm.names)
    assert harness.store.trouble["slurm"] == "scontrol: no answer in 10 s"
    answers[0] = True
    harness.look()
    assert "slurm" not in harness.store.trouble


@pytest.mark.parametrize(
    ("program", "why"),
    [("/nowhere/scontrol", "cannot be run"), ("false", "exit code 1"), ("scontrol", "scontrol: ")],
)
def test_a_client_that_cannot_ask_says_why(program: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SlurmUnavailableError, match=why):
        scontrol_reader(program, tmp_path / "slurm.conf", 10.0)()
