"""The open incidents and the reports, without any other system, on a clock that the test moves."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.incidents.incident import Incident
from bot.incidents.reports import ReportStore
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.detect import DetectionTimes, detect
from bot.metrics import Metrics
from checks.finding import Finding
from checks.report import Inventory, NodeReport
from reconciler.kube.objects import Node
from tests.bot.samples import BOOT, NOW, config

TIMES = DetectionTimes(
    report_interval=timedelta(seconds=30), clear_after=timedelta(minutes=5), offer_lifetime=timedelta(hours=1)
)


def node(name: str = "gpu-01", uid: str = "uid-01", pool: str = "h100") -> Node:
    return Node(
        name=name, uid=uid, boot_id=BOOT, ready=True, unschedulable=False, taints=(), labels={"pool": pool},
        annotations={}, gpus=8, resource_version="1",
    )  # fmt: skip


@dataclass
class Detection:
    """The open incidents, the reports and a clock that the test moves."""

    now: datetime = NOW
    sequence: int = 0
    store: IncidentStore = field(init=False)
    reports: ReportStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = IncidentStore("example", Metrics(), lambda: self.now)
        self.store.config, self.store.read_git = config(), True
        self.store.set_nodes([node()])
        self.reports = ReportStore(lambda: self.now)

    def pass_time(self, **span: float) -> None:
        self.now += timedelta(**span)
        detect(self.store, self.reports.all(), TIMES)

    def report(
        self, *findings: Finding, name: str = "gpu-01", boot: str = BOOT, blind: tuple[Finding, ...] = ()
    ) -> None:
        self.sequence += 1
        self.reports.accept(
            NodeReport(
                node=name, boot_id=boot, sequence=self.sequence, sent_at=0.0, agent_version="0.1.0",
                inventory=Inventory(gpus=None), findings=findings, blind_spots=blind,
            )
        )  # fmt: skip
        detect(self.store, self.reports.all(), TIMES)

    @property
    def open_incident(self) -> OpenIncident:
        (only,) = self.store.by_id.values()
        return only

    @property
    def incident(self) -> Incident:
        return self.open_incident.incident

    def change(self, **changes: object) -> None:
        self.store.set_incident(self.open_incident, replace(self.incident, **changes))  # type: ignore[arg-type]
