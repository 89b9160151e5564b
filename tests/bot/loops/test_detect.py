"""What reports do to incidents, with time as an argument: opened, worse, cleared, lapsed, silent, gone."""

from datetime import timedelta

from bot.incidents.incident import State
from bot.incidents.reports import Reception, ReportStore
from checks.finding import Action, Finding, Severity
from checks.report import Inventory, NodeReport
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.records import Cause, CloseReason
from tests.bot.loops.detection import Detection, node
from tests.bot.samples import BOOT, NEW_BOOT, NOW, decision, finding, offer, pod


def test_a_fault_opens_one_incident_however_often_it_is_reported(detection: Detection) -> None:
    for count in range(1, 6):
        detection.report(finding(count=count))
    assert detection.incident.state is State.OPEN
    assert (detection.incident.node_uid, detection.incident.boot_id, detection.incident.cause) == (
        "uid-01",
        BOOT,
        Cause.GPU,
    )


def test_nothing_is_opened_before_git_and_the_nodes_are_known(detection: Detection) -> None:
    detection.store.read_git = False
    detection.report(finding())
    detection.store.read_git, detection.store.nodes = True, None
    detection.report(finding())
    assert not detection.store.by_id


def test_a_report_of_an_unknown_node_waits_until_the_node_is_registered(detection: Detection) -> None:
    detection.report(finding(), name="gpu-02")
    assert not detection.store.by_id
    detection.store.set_nodes([node(), node("gpu-02", "uid-02")])
    detection.report(finding(), name="gpu-02")
    assert detection.incident.node == "gpu-02"


def test_worse_findings_ask_again_and_the_offer_starts_anew(detection: Detection) -> None:
    detection.report(finding())
    detection.change(state=State.DECLINED, offer=offer(pod()), decision=decision(approves=False))
    detection.now += timedelta(minutes=30)
    detection.report(finding(), finding(code="79", action=Action.FAILOVER))
    assert (detection.incident.state, detection.incident.worsened) == (State.OPEN, True)
    assert (detection.incident.offer, detection.incident.offer_from) == (None, detection.now)


def test_after_a_restart_a_refusal_of_all_these_findings_is_not_asked_about_again(
    detection: Detection,
) -> None:
    both = (finding(), finding(code="79", action=Action.FAILOVER))
    detection.report(finding())
    about = evidence_digest(BOOT, both)
    detection.change(state=State.DECLINED, decision=decision(approves=False, evidence_digest=about))
    detection.report(*both)
    assert (detection.incident.state, len(detection.incident.findings)) == (State.DECLINED, 2)
    detection.report(*both, finding(code="48", action=Action.RESET_GPU))
    assert detection.incident.state is State.OPEN


def test_fewer_findings_are_shown_and_leave_a_refusal_as_it_is(detection: Detection) -> None:
    detection.report(finding(), finding(code="79"))
    detection.change(state=State.DECLINED)
    before = detection.incident.revision
    detection.report(finding())
    assert (detection.incident.state, len(detection.incident.findings)) == (State.DECLINED, 1)
    assert detection.incident.revision == before + 1


def test_counts_are_shown_as_they_double_and_make_no_revision(detection: Detection) -> None:
    detection.report(finding(count=4))
    revision = detection.incident.revision
    detection.report(finding(count=7))
    assert detection.incident.findings[0].count == 4
    detection.report(finding(count=8))
    assert detection.incident.findings[0].count == 8
    assert detection.incident.revision == revision


def test_findings_that_stay_away_for_five_minutes_close_the_incident(detection: Detection) -> None:
    detection.report(finding())
    detection.report()
    assert detection.incident.clear_since == NOW
    for _ in range(9):
        detection.now += timedelta(seconds=30)
        detection.report()
    assert detection.incident.state is State.OPEN
    detection.now += timedelta(seconds=30)
    detection.report()
    assert detection.incident.state is State.CLOSED
    assert detection.incident.ending is not None
    assert detection.incident.ending.why is CloseReason.CLEARED


def test_findings_that_come_back_start_the_five_minutes_again(detection: Detection) -> None:
    detection.report(finding())
    detection.report()
    detection.now += timedelta(minutes=4)
    detection.report(finding())
    assert detection.incident.clear_since is None
    detection.now += timedelta(minutes=4)
    detection.report()
    assert detection.incident.state is State.OPEN


def test_a_silent_node_has_not_been_seen_healthy(detection: Detection) -> None:
    detection.report(finding())
    detection.report()
    detection.pass_time(minutes=10)
    gpu = detection.store.find("uid-01", Cause.GPU)
    assert gpu is not None
    assert (gpu.incident.state, gpu.incident.clear_since) == (State.OPEN, None)
    agent = detection.store.find("uid-01", Cause.AGENT)
    assert agent is not None
    assert agent.incident.findings[0].check == "silence"


def test_silence_opens_an_incident_after_three_missed_reports_and_ends_with_the_next_report(
    detection: Detection,
) -> None:
    detection.report()
    detection.pass_time(seconds=90)
    assert not detection.store.by_id
    detection.pass_time(seconds=1)
    assert detection.incident.cause is Cause.AGENT
    revision = detection.incident.revision
    detection.pass_time(minutes=5)
    assert detection.incident.revision == revision
    detection.report()
    for _ in range(10):
        detection.now += timedelta(seconds=30)
        detection.report()
    assert detection.incident.state is State.CLOSED


def test_a_node_of_a_pool_that_never_spoke_is_silent_too_and_others_are_not_expected_to(
    detection: Detection,
) -> None:
    detection.store.set_nodes([node(), node("cpu-01", "uid-09", pool="none")])
    detection.pass_time(seconds=91)
    assert detection.incident.node == "gpu-01"


def test_a_node_that_joins_later_has_its_three_reports_time_too(detection: Detection) -> None:
    detection.report()
    detection.now += timedelta(hours=1)
    detection.report()
    detection.store.set_nodes([node(), node("gpu-02", "uid-02")])
    detection.pass_time(seconds=90)
    assert not detection.store.by_id
    detection.report()
    detection.pass_time(seconds=1)
    assert detection.incident.node == "gpu-02"


def test_a_node_that_rebooted_by_itself_is_about_its_new_boot(detection: Detection) -> None:
    detection.report(finding())
    detection.change(offer=offer(pod()))
    offer_digest = detection.incident.offer_digest
    detection.report(finding(), boot=NEW_BOOT)
    assert (detection.incident.boot_id, detection.incident.opened_boot_id) == (NEW_BOOT, BOOT)
    assert detection.incident.offer_digest != offer_digest
    assert detection.open_incident.pods_read_at is None


def test_a_changed_finding_voids_a_decision_in_flight(detection: Detection) -> None:
    detection.report(finding())
    detection.change(state=State.DECIDING, decision=decision(), offer=offer(pod()))
    detection.report(finding(severity=Severity.WARNING))
    assert (detection.incident.state, detection.incident.decision) == (State.OPEN, None)


def test_an_offer_lapses_in_its_moment_and_takes_a_decision_in_flight_with_it(detection: Detection) -> None:
    detection.report(finding())
    detection.change(state=State.DECIDING, decision=decision(), offer=offer(pod(), minutes=60))
    detection.now += timedelta(minutes=59)
    detection.report(finding())
    assert detection.incident.state is State.DECIDING
    detection.now += timedelta(minutes=1)
    detection.report(finding())
    assert (detection.incident.state, detection.incident.decision) == (State.LAPSED, None)


def test_a_node_that_is_removed_or_registers_again_ends_its_incident(detection: Detection) -> None:
    detection.report(finding())
    detection.store.set_nodes([node(uid="uid-77")])
    detection.pass_time(seconds=1)
    ended = next(
        open_incident.incident
        for open_incident in detection.store.by_id.values()
        if open_incident.incident.node_uid == "uid-01"
    )
    assert (ended.state, ended.ending and ended.ending.why) == (State.CLOSED, CloseReason.NODE_GONE)


def test_the_same_fault_again_is_a_new_incident_with_a_new_id(detection: Detection) -> None:
    detection.report(finding())
    first = detection.incident.id
    detection.change(state=State.CLOSED)
    detection.store.remove(first)
    detection.report(finding())
    assert detection.incident.id != first
    assert detection.incident.id.startswith("gpu-01-")


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
