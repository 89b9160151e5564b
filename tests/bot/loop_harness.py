"""The bot's loops in one process: production code over `fakes`, on a clock that the test moves. Nothing sleeps.

The test plays the agents, the people and the reconciler, and chooses each awkward moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from bot.incidents.approve import Account, Denied
from bot.incidents.incident import Incident
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.cluster_state import ClusterState
from bot.loops.decide import ButtonClick
from bot.loops.detect import DetectionTimes
from bot.loops.lifecycle import ExternalSystems, Lifecycle, LoopIntervals
from bot.metrics import Metrics
from checks.finding import Finding
from checks.report import Inventory, NodeReport
from reconciler.incidents.paths import beside, kind_of
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import RepairOutcome, RepairRecord
from reconciler.incidents.value import RecordValue
from reconciler.kube.objects import Node, Pod
from reconciler.repair.resource import RepairStatus
from tests.bot.fakes import FakeChat, FakeCluster, FakeIncidentLog, Sent
from tests.bot.samples import BOOT, NEW_BOOT, NOW, account, config

Result = TypeVar("Result")

DETECTION = DetectionTimes(
    report_interval=timedelta(seconds=30), clear_after=timedelta(minutes=5), offer_lifetime=timedelta(hours=1)
)
INTERVALS = LoopIntervals(
    sweep=timedelta(seconds=1),
    git_poll=timedelta(seconds=5),
    git_retry=timedelta(seconds=3),
    nodes_poll=timedelta(seconds=5),
    repairs_poll=timedelta(seconds=2),
    offer_refresh=timedelta(seconds=10),
    edit_after=timedelta(seconds=3),
)
ROUNDS = 6
"""Runs of every task after a change: a fault passes through Git twice before it is closed."""

SECOND = Account("U0SECOND", "Second Approver", "second@example.com")
VISITOR = Account("U0VISITOR", "Example Visitor", "visitor@example.com")
APPROVER = account().id


def node(name: str = "gpu-01", uid: str = "uid-01", boot_id: str = BOOT) -> Node:
    """A Ready node of the pool, with 8 GPUs."""
    return Node(
        name=name, uid=uid, boot_id=boot_id, ready=True, unschedulable=False, taints=(), labels={"pool": "h100"},
        annotations={}, gpus=8, resource_version="1",
    )  # fmt: skip


def running_pod(name: str = "worker-0", on: str = "gpu-01", *, gpus: int = 8) -> Pod:
    """A pod of a Job."""
    return Pod(
        namespace="train", name=name, uid=f"uid-{name}", node=on, phase="Running", labels={}, controller="Job/train",
        mirror=False, gpus=gpus, empty_dir=False, terminating=False,
    )  # fmt: skip


@dataclass
class BotLoops:
    """One bot with its systems. `restart` replaces what is in memory, as a crash does.

    `api_server` is read in place of `cluster` where a test has a real one.
    """

    now: datetime = NOW
    chat: FakeChat = field(default_factory=FakeChat)
    git: FakeIncidentLog = field(default_factory=lambda: FakeIncidentLog(config()))
    cluster: FakeCluster = field(default_factory=FakeCluster)
    api_server: ClusterState | None = None
    store: IncidentStore = field(init=False)
    reports: ReportStore = field(init=False)
    lifecycle: Lifecycle = field(init=False)
    sequence: int = 0
    reported: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        self.chat.accounts = {each.id: each for each in (account(), SECOND, VISITOR)}
        self.cluster.nodes_by_name = {"gpu-01": node()}
        self.cluster.pods_by_node = {"gpu-01": (running_pod(),)}
        self.restart()

    def restart(self) -> None:
        """Lose everything that is in memory."""
        self.store = IncidentStore("example", Metrics(), lambda: self.now)
        self.reports = ReportStore(lambda: self.now)
        systems = ExternalSystems(self.git, self.api_server or self.cluster, self.chat, self.uptime)
        self.lifecycle = Lifecycle(self.store, self.reports, systems, DETECTION, INTERVALS)

    # -- time

    def settle(self) -> None:
        """Run every task until a change has passed through all of them; time stands still."""
        asyncio.run(self._settle())

    async def _settle(self) -> None:
        for _ in range(ROUNDS):
            for task in self.lifecycle.tasks():
                await task.run()

    def uptime(self) -> float:
        return (self.now - NOW).total_seconds()

    def wait(self, *, silent: bool = False, **span: float) -> None:
        """Let time pass and the agent say the same again, unless it is `silent`; then settle."""
        self.now += timedelta(**span)
        if silent:
            self.settle()
        else:
            self.report(*self.reported)

    def run_task(self, name: str) -> None:
        """Run one task once."""
        (task,) = [each for each in self.lifecycle.tasks() if each.name == name]
        self.run(task.run)

    def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run what a test does at one moment, such as two clicks at once."""

        async def whole() -> Result:
            return await work()

        return asyncio.run(whole())

    # -- agents

    def report(self, *findings: Finding, name: str = "gpu-01", boot_id: str = BOOT) -> None:
        """Have the agent of a node report, then settle."""
        self.sequence += 1
        self.reported = findings
        self.reports.accept(
            NodeReport(
                node=name, boot_id=boot_id, sequence=self.sequence, sent_at=0.0, agent_version="0.1.0",
                inventory=Inventory(gpus=None), findings=findings, blind_spots=(),
            )
        )  # fmt: skip
        self.settle()

    # -- what people see and do

    @property
    def open_incident(self) -> OpenIncident:
        (only,) = self.store.by_id.values()
        return only

    @property
    def incident(self) -> Incident:
        return self.open_incident.incident

    @property
    def roots(self) -> list[Sent]:
        return [each for each in self.chat.sent if each.thread is None and not each.deleted]

    @property
    def root(self) -> Sent:
        (only,) = self.roots
        return only

    @property
    def replies(self) -> list[str]:
        return [each.message.text for each in self.chat.sent if each.thread is not None]

    def buttons(self, sent: Sent | None = None, version: int = -1) -> dict[str, str]:
        """Return the values of the buttons on the root by their action."""
        blocks = (sent or self.root).versions[version][0].blocks
        elements = [each for block in blocks if block["type"] == "actions" for each in block["elements"]]
        return {each["action_id"]: each["value"] for each in elements}

    def offered(self, version: int = -1) -> str:
        """Return the value of the Approve button, which has to be there."""
        return self.buttons(version=version)["approve"]

    async def clicks(
        self, action: str, user: str = APPROVER, value: str = "", reason: str = ""
    ) -> Denied | None:
        """Click a button, the one on the root as it is now unless a value is given."""
        clicked = ButtonClick(action, user, value or self.buttons()[action], reason)
        return await self.lifecycle.decisions.click(clicked)

    def click(self, action: str, user: str = APPROVER, value: str = "", reason: str = "") -> Denied | None:
        """Click a button, then settle."""
        denied = self.run(lambda: self.clicks(action, user, value, reason))
        self.settle()
        return denied

    # -- the reconciler

    def files(self) -> list[str]:
        """Return the names of the files of all incidents."""
        return sorted(path.rsplit("/", 1)[1] for path in self.git.files)

    def record(self, attempt: int = 1) -> tuple[str, RepairRecord]:
        """Return the path and the content of a repair record in Git."""
        snapshot = asyncio.run(self.git.last_read())
        for path in self.git.files:
            if path.endswith(f"/repair-{attempt}.yaml"):
                found = snapshot.open[path.split("/")[-2]].records[f"repair-{attempt}.yaml"]
                assert isinstance(found, RepairRecord)
                return path, found
        raise AssertionError(f"no repair-{attempt}.yaml in {self.files()}")

    def progress(self, status: RepairStatus, attempt: int = 1) -> None:
        """Show a Repair of the recorded attempt in Kubernetes, then settle."""
        _, record = self.record(attempt)
        self.cluster.objects[record.action_id] = {
            "metadata": {"name": record.action_id},
            "spec": {"record": record.model_dump(mode="json", by_alias=True, exclude_none=True)},
            "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        self.settle()

    def finish(self, phase: Phase, attempt: int = 1, **fields: Any) -> None:
        """Record the outcome of an attempt, then settle."""
        path, record = self.record(attempt)
        outcome = RepairOutcome(
            action_id=record.action_id, attempt=attempt, action=record.action, incident=record.evidence.incident,
            node=record.evidence.node, phase=phase, reason="as the test says", started_at=record.approved_at,
            finished_at=self.now, old_boot_id=BOOT, new_boot_id=NEW_BOOT,
        ).model_copy(update=fields)  # fmt: skip
        self.write(path, f"outcome-{attempt}.yaml", outcome)

    def write(self, near: str, name: str, value: RecordValue) -> None:
        """Record a file beside another one as somebody else, then settle."""
        assert kind_of(name)
        self.git.write(beside(near, name), value)
        self.settle()

    def reboot(self, boot_id: str = NEW_BOOT) -> None:
        """Have the kubelet of gpu-01 report another boot."""
        self.cluster.nodes_by_name["gpu-01"] = replace(self.cluster.nodes_by_name["gpu-01"], boot_id=boot_id)

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of a metric, 0 while it does not exist."""
        return self.store.metrics.registry.get_sample_value(f"clusterwright_bot_{name}", labels) or 0.0
