"""Findings become faults by cause; silence is a fault of its own."""

from datetime import timedelta
from itertools import permutations

import msgspec

from bot.incidents.correlate import cause_of, faults, incident_id, is_silent, opens_incident, silence_fault
from checks.finding import Action, Finding, Severity
from checks.report import Gpu, Inventory, NodeReport
from reconciler.incidents.records import Cause
from tests.bot.samples import BOOT, NOW, finding


def report(*findings: Finding, blind: tuple[Finding, ...] = ()) -> NodeReport:
    return NodeReport(
        node="gpu-01", boot_id=BOOT, sequence=1, sent_at=0.0, agent_version="0.1.0",
        inventory=Inventory(gpus=None), findings=findings, blind_spots=blind,
    )  # fmt: skip


def note(code: str, at: float, subsystem: str = "xid") -> Finding:
    return finding(
        subsystem=subsystem, check=subsystem, code=code, severity=Severity.INFO, action=Action.NONE,
        first_seen=at, last_seen=at,
    )  # fmt: skip


def test_one_physical_fault_is_one_incident_in_whatever_order_its_lines_came() -> None:
    lost = finding(code="79", action=Action.FAILOVER)
    decided = finding()
    bus = finding(check="aer", subsystem="aer", code="aer-fatal", action=Action.FAILOVER, gpu=None)
    for order in permutations((lost, decided, bus)):
        found = faults(report(*order))
        assert set(found) == {Cause.GPU}
        assert {each.code for each in found[Cause.GPU].findings} == {"79", "154", "aer-fatal"}
    first, second = (faults(report(*order)) for order in ((lost, decided), (decided, lost)))
    assert first == second


def test_a_fault_names_the_boards_of_its_own_gpus_as_far_as_they_are_known() -> None:
    gpus = tuple(
        Gpu(address=f"0000:{bus}:00.0", uuid="GPU-1", serial=serial)
        for bus, serial in (("1b", "1653923026510"), ("43", "1653923026511"), ("52", None))
    )
    sick = (finding(gpu="0000:1b:00.0"), finding(gpu="0000:52:00.0"))
    told = msgspec.structs.replace(report(*sick), inventory=Inventory(gpus=gpus))
    assert faults(told)[Cause.GPU].boards == (("0000:1b:00.0", "1653923026510"),)


def test_causes_stand_apart() -> None:
    disk = finding(check="nvme", subsystem="nvme", code="nvme-dead", gpu=None)
    memory = finding(check="edac", subsystem="edac", code="edac-ue", gpu=None)
    nic = finding(check="mlx5", subsystem="mlx5", code="mlx5-health", gpu=None)
    found = faults(report(finding(), disk, memory, nic))
    assert set(found) == {Cause.GPU, Cause.STORAGE, Cause.HOST, Cause.NETWORK}


def test_info_and_application_faults_open_nothing() -> None:
    app = finding(code="13", severity=Severity.APP, action=Action.NONE)
    watched = finding(code="92", severity=Severity.WARNING, action=Action.NONE)
    assert faults(report(note("45", 0.0), app, watched)) == {}


def test_what_is_not_understood_goes_to_a_person() -> None:
    odd = finding(code="999", severity=Severity.UNKNOWN, action=Action.ASK)
    assert faults(report(odd))[Cause.GPU].findings == (odd,)


def test_harmless_lines_of_the_same_minute_are_companions_and_others_are_not() -> None:
    fault = finding(first_seen=1_000.0, last_seen=1_000.0)
    near, far = note("45", 1_060.0), note("43", 1_061.0)
    other_cause = note("edac-ce", 1_000.0, "edac")
    found = faults(report(fault, near, far, other_cause))[Cause.GPU]
    assert found.findings == (fault,)
    assert found.companions == (near,)


def test_a_blind_spot_is_the_agents_fault_whatever_it_is_blind_for() -> None:
    blind = finding(
        check="log-blind", subsystem="xid", code="log-blind", severity=Severity.WARNING, action=Action.ASK
    )
    assert set(faults(report(blind=(blind,)))) == {Cause.AGENT}


def test_every_subsystem_in_the_kernel_line_corpus_has_a_cause() -> None:
    by_cause = {
        Cause.GPU: ("xid", "nvrm", "sxid", "aer", "pcie", "fabric-manager", "peermem"),
        Cause.NETWORK: ("mlx5", "nic"),
        Cause.STORAGE: ("ext4", "xfs", "nvme", "nfs"),
        Cause.HOST: ("edac", "mce", "ghes", "hung-task", "oom", "lockup", "segfault", "never-heard-of"),
    }
    known = {name: cause for cause, names in by_cause.items() for name in names}
    assert {name: cause_of(finding(subsystem=name)) for name in known} == known


def test_the_same_fault_has_the_same_id_and_any_other_another() -> None:
    base = incident_id("example", "gpu-01", "uid", (Cause.GPU, BOOT), 0)
    assert base == incident_id("example", "gpu-01", "uid", (Cause.GPU, BOOT), 0)
    assert base.startswith("gpu-01-")
    assert len(base) == len("gpu-01-") + 6
    others = {
        incident_id("other", "gpu-01", "uid", (Cause.GPU, BOOT), 0),
        incident_id("example", "gpu-01", "uid2", (Cause.GPU, BOOT), 0),
        incident_id("example", "gpu-01", "uid", (Cause.HOST, BOOT), 0),
        incident_id("example", "gpu-01", "uid", (Cause.GPU, "boot"), 0),
        incident_id("example", "gpu-01", "uid", (Cause.GPU, BOOT), 1),
    }
    assert len(others | {base}) == 6


def test_three_missed_reports_are_silence_and_not_sooner() -> None:
    assert not is_silent(NOW, NOW + timedelta(seconds=90), 30)
    assert is_silent(NOW, NOW + timedelta(seconds=91), 30)


def test_silence_opens_an_incident_that_stays_the_same_while_it_lasts() -> None:
    once, again = silence_fault(NOW, 30), silence_fault(NOW, 30)
    assert once == again
    assert once.cause is Cause.AGENT
    assert opens_incident(once.findings[0])
    assert "03:12:45 UTC" in once.findings[0].evidence
