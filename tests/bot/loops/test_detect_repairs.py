"""What reports do to incidents while a repair may run, and after it."""

from datetime import timedelta

import msgspec
import pytest

from bot.incidents.incident import IncidentEvent, State
from checks.finding import Finding
from reconciler.incidents.records import Cause
from tests.bot.loops.detection import Detection
from tests.bot.samples import NEW_BOOT, finding


def test_while_a_repair_may_run_findings_stand_still_and_nothing_new_opens(detection: Detection) -> None:
    detection.report(finding())
    for state in (State.APPROVED, State.REPAIRING):
        detection.change(state=state)
        before = detection.incident
        detection.report(
            finding(code="79"), finding(subsystem="edac", check="edac", code="edac-ue"), boot=NEW_BOOT
        )
        detection.report(boot=NEW_BOOT)
        detection.pass_time(minutes=20)
        assert detection.incident == before


def test_what_is_still_wrong_when_a_repair_has_ended_is_opened_then(detection: Detection) -> None:
    detection.report(finding())
    detection.change(state=State.REPAIRING)
    other = finding(subsystem="edac", check="edac", code="edac-ue")
    detection.report(other, boot=NEW_BOOT)
    detection.change(state=State.CLOSED)
    detection.report(other, boot=NEW_BOOT)
    assert detection.store.find("uid-01", Cause.HOST) is not None


def test_a_held_incident_waits_for_a_person_however_healthy_the_node_looks(detection: Detection) -> None:
    detection.report(finding())
    detection.change(state=State.HELD)
    detection.report()
    for _ in range(12):
        detection.now += timedelta(seconds=30)
        detection.report()
    assert detection.incident.state is State.HELD
    assert detection.store.transition(detection.open_incident, IncidentEvent.RESOLVED)


EXPECTED_OF_A_REPAIR = [("xid", code) for code in ("45", "79", "149", "154", "155")] + [("sxid", "20034")]
"""What our own repair brings about on its node (node checks, M7)."""


@pytest.mark.parametrize("state", [State.APPROVED, State.REPAIRING])
@pytest.mark.parametrize(("subsystem", "code"), EXPECTED_OF_A_REPAIR)
def test_what_a_repair_brings_about_opens_nothing_until_it_has_ended(
    detection: Detection, state: State, subsystem: str, code: str
) -> None:
    disk = replace_finding(finding(), check="nvme", subsystem="nvme", code="nvme-dead", gpu=None)
    detection.report(disk)
    detection.change(state=state)
    shaken = replace_finding(finding(), check=subsystem, subsystem=subsystem, code=code)
    detection.report(disk, shaken)
    detection.pass_time(minutes=1)
    assert [each.cause for each in detection.store.incidents] == [Cause.STORAGE]
    detection.change(state=State.OPEN)
    detection.report(disk, shaken)
    assert {each.cause for each in detection.store.incidents} == {Cause.STORAGE, Cause.GPU}


def replace_finding(each: Finding, **changes: object) -> Finding:
    return msgspec.structs.replace(each, **changes)
