"""What reports do to incidents, with time as an argument: opened, worse, cleared, lapsed, silent, gone."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec
import pytest

from bot.incidents.incident import Incident, IncidentEvent, State
from bot.incidents.reports import Reception, ReportStore
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.detect import DetectionTimes, detect
from bot.metrics import Metrics
from checks.finding import Action, Finding, Severity
from checks.report import Inventory, NodeReport
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.records import Cause, CloseReason
from reconciler.kube.objects import Node
from tests.bot.samples import BOOT, NEW_BOOT, NOW, config, decision, finding, offer, pod

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


@pytest.fixture
def bot() -> Detection:
    return Detection()


def test_a_fault_opens_one_incident_however_often_it_is_reported(bot: Detection) -> None:
    for count in range(1, 6):
        bot.report(finding(count=count))
    assert bot.incident.state is State.OPEN
    assert (bot.incident.node_uid, bot.incident.boot_id, bot.incident.cause) == (
        "uid-01",
        BOOT,
        Cause.GPU,
    )


def test_nothing_is_opened_before_git_and_the_nodes_are_known(bot: Detection) -> None:
    bot.store.read_git = False
    bot.report(finding())
    bot.store.read_git, bot.store.nodes = True, None
    bot.report(finding())
    assert not bot.store.by_id


def test_a_report_of_an_unknown_node_waits_until_the_node_is_registered(bot: Detection) -> None:
    bot.report(finding(), name="gpu-02")
    assert not bot.store.by_id
    bot.store.set_nodes([node(), node("gpu-02", "uid-02")])
    bot.report(finding(), name="gpu-02")
    assert bot.incident.node == "gpu-02"


def test_worse_findings_ask_again_and_the_offer_starts_anew(bot: Detection) -> None:
    bot.report(finding())
    bot.change(state=State.DECLINED, offer=offer(pod()), decision=decision(approves=False))
    bot.now += timedelta(minutes=30)
    bot.report(finding(), finding(code="79", action=Action.FAILOVER))
    assert (bot.incident.state, bot.incident.worsened) == (State.OPEN, True)
    assert (bot.incident.offer, bot.incident.offer_from) == (None, bot.now)


def test_after_a_restart_a_refusal_of_all_these_findings_is_not_asked_about_again(bot: Detection) -> None:
    both = (finding(), finding(code="79", action=Action.FAILOVER))
    bot.report(finding())
    about = evidence_digest(BOOT, both)
    bot.change(state=State.DECLINED, decision=decision(approves=False, evidence_digest=about))
    bot.report(*both)
    assert (bot.incident.state, len(bot.incident.findings)) == (State.DECLINED, 2)
    bot.report(*both, finding(code="48", action=Action.RESET_GPU))
    assert bot.incident.state is State.OPEN


def test_fewer_findings_are_shown_and_leave_a_refusal_as_it_is(bot: Detection) -> None:
    bot.report(finding(), finding(code="79"))
    bot.change(state=State.DECLINED)
    before = bot.incident.revision
    bot.report(finding())
    assert (bot.incident.state, len(bot.incident.findings)) == (State.DECLINED, 1)
    assert bot.incident.revision == before + 1


def test_counts_are_shown_as_they_double_and_make_no_revision(bot: Detection) -> None:
    bot.report(finding(count=4))
    revision = bot.incident.revision
    bot.report(finding(count=7))
    assert bot.incident.findings[0].count == 4
    bot.report(finding(count=8))
    assert bot.incident.findings[0].count == 8
    assert bot.incident.revision == revision


def test_findings_that_stay_away_for_five_minutes_close_the_incident(bot: Detection) -> None:
    bot.report(finding())
    bot.report()
    assert bot.incident.clear_since == NOW
    for _ in range(9):
        bot.now += timedelta(seconds=30)
        bot.report()
    assert bot.incident.state is State.OPEN
    bot.now += timedelta(seconds=30)
    bot.report()
    assert bot.incident.state is State.CLOSED
    assert bot.incident.ending is not None
    assert bot.incident.ending.why is CloseReason.CLEARED


def test_findings_that_come_back_start_the_five_minutes_anew(bot: Detection) -> None:
    bot.report(finding())
    bot.report()
    bot.now += timedelta(minutes=4)
    bot.report(finding())
    assert bot.incident.clear_since is None
    bot.now += timedelta(minutes=4)
    bot.report()
    assert bot.incident.state is State.OPEN


def test_a_silent_node_has_not_been_seen_healthy(bot: Detection) -> None:
    bot.report(finding())
    bot.report()
    bot.pass_time(minutes=10)
    gpu = bot.store.find("uid-01", Cause.GPU)
    assert gpu is not None
    assert (gpu.incident.state, gpu.incident.clear_since) == (State.OPEN, None)
    agent = bot.store.find("uid-01", Cause.AGENT)
    assert agent is not None
    assert agent.incident.findings[0].check == "silence"


def test_silence_is_told_after_three_missed_reports_and_ends_when_the_node_speaks(bot: Detection) -> None:
    bot.report()
    bot.pass_time(seconds=90)
    assert not bot.store.by_id
    bot.pass_time(seconds=1)
    assert bot.incident.cause is Cause.AGENT
    revision = bot.incident.revision
    bot.pass_time(minutes=5)
    assert bot.incident.revision == revision
    bot.report()
    for _ in range(10):
        bot.now += timedelta(seconds=30)
        bot.report()
    assert bot.incident.state is State.CLOSED


def test_a_node_of_a_pool_that_never_spoke_is_silent_too_and_others_are_not_expected_to(
    bot: Detection,
) -> None:
    bot.store.set_nodes([node(), node("cpu-01", "uid-09", pool="none")])
    bot.pass_time(seconds=91)
    assert bot.incident.node == "gpu-01"


def test_a_node_that_joins_later_has_its_three_reports_time_too(bot: Detection) -> None:
    bot.report()
    bot.now += timedelta(hours=1)
    bot.report()
    bot.store.set_nodes([node(), node("gpu-02", "uid-02")])
    bot.pass_time(seconds=90)
    assert not bot.store.by_id
    bot.report()
    bot.pass_time(seconds=1)
    assert bot.incident.node == "gpu-02"


def test_while_a_repair_may_run_findings_stand_still_and_nothing_new_opens(bot: Detection) -> None:
    bot.report(finding())
    for state in (State.APPROVED, State.REPAIRING):
        bot.change(state=state)
        before = bot.incident
        bot.report(finding(code="79"), finding(subsystem="edac", check="edac", code="edac-ue"), boot=NEW_BOOT)
        bot.report(boot=NEW_BOOT)
        bot.pass_time(minutes=20)
        assert bot.incident == before


def test_what_is_still_wrong_when_a_repair_has_ended_is_opened_then(bot: Detection) -> None:
    bot.report(finding())
    bot.change(state=State.REPAIRING)
    other = finding(subsystem="edac", check="edac", code="edac-ue")
    bot.report(other, boot=NEW_BOOT)
    bot.change(state=State.CLOSED)
    bot.report(other, boot=NEW_BOOT)
    assert bot.store.find("uid-01", Cause.HOST) is not None


def test_a_node_that_rebooted_by_itself_is_about_its_new_boot(bot: Detection) -> None:
    bot.report(finding())
    bot.change(offer=offer(pod()))
    offer_digest = bot.incident.offer_digest
    bot.report(finding(), boot=NEW_BOOT)
    assert (bot.incident.boot_id, bot.incident.opened_boot_id) == (NEW_BOOT, BOOT)
    assert bot.incident.offer_digest != offer_digest
    assert bot.open_incident.pods_read_at is None


def test_a_changed_finding_voids_a_decision_in_flight(bot: Detection) -> None:
    bot.report(finding())
    bot.change(state=State.DECIDING, decision=decision(), offer=offer(pod()))
    bot.report(finding(severity=Severity.WARNING))
    assert (bot.incident.state, bot.incident.decision) == (State.OPEN, None)


def test_an_offer_lapses_in_its_moment_and_takes_a_decision_in_flight_with_it(bot: Detection) -> None:
    bot.report(finding())
    bot.change(state=State.DECIDING, decision=decision(), offer=offer(pod(), minutes=60))
    bot.now += timedelta(minutes=59)
    bot.report(finding())
    assert bot.incident.state is State.DECIDING
    bot.now += timedelta(minutes=1)
    bot.report(finding())
    assert (bot.incident.state, bot.incident.decision) == (State.LAPSED, None)


def test_a_removed_or_registered_anew_node_ends_its_incident(bot: Detection) -> None:
    bot.report(finding())
    bot.store.set_nodes([node(uid="uid-77")])
    bot.pass_time(seconds=1)
    ended = next(
        open_incident.incident
        for open_incident in bot.store.by_id.values()
        if open_incident.incident.node_uid == "uid-01"
    )
    assert (ended.state, ended.ending and ended.ending.why) == (State.CLOSED, CloseReason.NODE_GONE)


def test_the_same_fault_again_is_a_new_incident_with_a_new_id(bot: Detection) -> None:
    bot.report(finding())
    first = bot.incident.id
    bot.change(state=State.CLOSED)
    bot.store.remove(first)
    bot.report(finding())
    assert bot.incident.id != first
    assert bot.incident.id.startswith("gpu-01-")


def test_a_held_incident_waits_for_a_person_however_healthy_the_node_looks(bot: Detection) -> None:
    bot.report(finding())
    bot.change(state=State.HELD)
    bot.report()
    for _ in range(12):
        bot.now += timedelta(seconds=30)
        bot.report()
    assert bot.incident.state is State.HELD
    assert bot.store.transition(bot.open_incident, IncidentEvent.RESOLVED)


def test_a_report_is_replaced_by_a_later_one_of_its_boot_or_one_of_another_boot() -> None:
    reports = ReportStore(lambda: NOW)

    def report(sequence: int, boot: str = BOOT, *findings: Finding) -> NodeReport:
        return NodeReport(
            node="gpu-01", boot_id=boot, sequence=sequence, sent_at=0.0, agent_version="0.1.0",
            inventory=Inventory(gpus=None), findings=findings, blind_spots=(),
        )  # fmt: skip

    assert reports.accept(report(5)) is Reception.NEW
    assert reports.accept(report(5)) is Reception.SAME
    assert reports.accept(report(6)) is Reception.SAME
    assert reports.accept(report(4)) is Reception.STALE
    assert reports.accept(report(7, BOOT, finding())) is Reception.NEW
    assert reports.accept(report(1, NEW_BOOT)) is Reception.NEW
    held = reports.newest("gpu-01")
    assert held is not None
    assert (held.report.sequence, held.report.boot_id, held.age_seconds) == (1, NEW_BOOT, 0.0)
    assert reports.newest("gpu-02") is None


EXPECTED_OF_A_REPAIR = [("xid", code) for code in ("45", "79", "149", "154", "155")] + [("sxid", "20034")]
"""What our own repair brings about on its node (node checks, M7)."""


@pytest.mark.parametrize("state", [State.APPROVED, State.REPAIRING])
@pytest.mark.parametrize(("subsystem", "code"), EXPECTED_OF_A_REPAIR)
def test_what_a_repair_brings_about_opens_nothing_until_it_has_ended(
    bot: Detection, state: State, subsystem: str, code: str
) -> None:
    disk = replace_finding(finding(), check="nvme", subsystem="nvme", code="nvme-dead", gpu=None)
    bot.report(disk)
    bot.change(state=state)
    shaken = replace_finding(finding(), check=subsystem, subsystem=subsystem, code=code)
    bot.report(disk, shaken)
    bot.pass_time(minutes=1)
    assert [each.cause for each in bot.store.incidents] == [Cause.STORAGE]
    bot.change(state=State.OPEN)
    bot.report(disk, shaken)
    assert {each.cause for each in bot.store.incidents} == {Cause.STORAGE, Cause.GPU}


def replace_finding(each: Finding, **changes: object) -> Finding:
    return msgspec.structs.replace(each, **changes)
