"""What stands in the kernel log beside other found: field 230, SRAM limits, hangs (M1, M5, M6)."""

import msgspec
import pytest

from checks.finding import Action, Finding, Severity
from checks.kernel.faults.kernel_faults import ANSWER_SECONDS, KernelFaults, SavedFaults
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.parse.xid import RecoveryRequest
from checks.kernel.source.line import KernelLine

ONE, TWO = "0000:1b:00.0", "0000:43:00.0"
NONE, RESET, REBOOT = 0, 1, 2
ACTIONS = {NONE: "0x0 (None)", RESET: "0x1 (GPU Reset Required)", REBOOT: "0x2 (Node Reboot Required)"}


def event(code: int, gpu: str = "1b", rest: str = "MMU Fault", pid: int = 1) -> KernelEvent:
    return said(f"NVRM: Xid (PCI:0000:{gpu}:00): {code}, pid={pid}, name=train, {rest}")


def said(text: str) -> KernelEvent:
    (found,) = KernelLogReader().events(KernelLine((text,)), 1)
    return found


def named(number: int, gpu: str = "1b") -> KernelEvent:
    """Return the Xid 154 by which the driver asks for a recovery action."""
    return event(154, gpu, f"GPU recovery action changed from 0x0 (None) to {ACTIONS[number]}")


def codes(faults: KernelFaults) -> list[str | None]:
    return [each.code for each in faults.events]


def evidence(code: str, severity: Severity, action: Action, gpu: str | None = None) -> Finding:
    return Finding(
        check=code, subsystem="recovery", code=code, severity=severity, action=action, gpu=gpu,
        first_seen=0.0, last_seen=0.0,
    )  # fmt: skip


def told(met: KernelEvent, *found: Finding) -> str:
    faults = KernelFaults()
    faults.take(met, 0.0, 0.0)
    faults.take_evidence(found)
    (finding,) = faults.findings()
    return f"{finding.severity}/{finding.action}"


ASKS_FOR_REBOOT = evidence("recovery-action", Severity.CRITICAL, Action.REBOOT, "0000:1b:00.0")
HANG = evidence("driver-unresponsive", Severity.CRITICAL, Action.REBOOT)
SLOW = evidence("driver-unresponsive", Severity.WARNING, Action.NONE)
WORN = evidence("sram-threshold", Severity.CRITICAL, Action.FAILOVER, "0000:1b:00.0")
STUCK = said("INFO: task nvidia-smi:4711 blocked for more than 120 seconds.")
STRANGE = evidence("recovery-action", Severity.UNKNOWN, Action.ASK, "0000:1b:00.0")


@pytest.mark.parametrize(
    ("met", "found", "verdict"),
    [
        (event(119), (), "critical/reset-gpu"),
        (event(119), (HANG,), "critical/reboot"),
        (event(120), (HANG,), "critical/reboot"),
        (event(119), (SLOW,), "critical/reset-gpu"),
        (event(95), (HANG,), "critical/reset-gpu"),
        (event(95), (ASKS_FOR_REBOOT,), "critical/reboot"),
        (event(95, gpu="43"), (ASKS_FOR_REBOOT,), "critical/reset-gpu"),
        (event(95), (STRANGE,), "critical/reset-gpu"),
        (event(45), (ASKS_FOR_REBOOT,), "info/none"),
        (event(119), (ASKS_FOR_REBOOT, HANG), "critical/reboot"),
        (event(48), (), "critical/reset-gpu"),
        (event(48), (WORN,), "critical/failover"),
        (event(172), (WORN,), "critical/failover"),
        (event(48), (ASKS_FOR_REBOOT, WORN), "critical/failover"),
        (event(48, gpu="43"), (WORN,), "critical/reset-gpu"),
        (event(95), (WORN,), "critical/reset-gpu"),
        (STUCK, (), "warning/ask"),
        (STUCK, (SLOW,), "warning/ask"),
        (STUCK, (HANG,), "critical/reboot"),
    ],
)
def test_what_nvml_says_decides_about_what_the_kernel_log_says(
    met: KernelEvent, found: tuple[Finding, ...], verdict: str
) -> None:
    assert told(met, *found) == verdict


def test_a_witness_that_is_gone_decides_nothing_any_more() -> None:
    faults = KernelFaults()
    faults.take(event(119), 0.0, 0.0)
    faults.take_evidence((HANG,))
    assert faults.findings()[0].action is Action.REBOOT
    faults.take_evidence(())
    assert faults.findings()[0].action is Action.RESET_GPU


def told_after(faults: KernelFaults) -> list[str]:
    return [f"{each.code} {each.severity}/{each.action}" for each in faults.findings()]


def test_a_109_is_the_jobs_once_the_driver_was_asked_after_it_and_wants_nothing() -> None:
    faults = KernelFaults()
    faults.take(event(109), 100.0, 0.0)
    assert faults.hear({ONE: RecoveryRequest(NONE, 100.0)}) == (False, []), (
        "asked before the line, or just then"
    )
    assert told_after(faults) == ["109 critical/reset-gpu"]
    assert faults.hear({ONE: RecoveryRequest(NONE, 160.0)}) == (True, [])
    assert told_after(faults) == ["109 app/none"]
    assert faults.hear({ONE: RecoveryRequest(NONE, 220.0)}) == (False, []), "that is no news"
    assert faults.expire(700.0), "and it ages out like any application's fault"


@pytest.mark.parametrize(
    "requests", [{TWO: RecoveryRequest(NONE, 160.0)}, {ONE: RecoveryRequest(RESET, 160.0)}, {}]
)
def test_a_109_stays_the_gpus_while_nobody_says_that_this_gpu_needs_nothing(
    requests: dict[str, RecoveryRequest],
) -> None:
    faults = KernelFaults()
    faults.take(event(109), 100.0, 0.0)
    faults.hear(requests)
    assert told_after(faults) == ["109 critical/reset-gpu"]


def test_a_109_that_comes_back_is_the_gpus_until_the_driver_is_asked_again() -> None:
    faults = KernelFaults()
    faults.take(event(109), 100.0, 0.0)
    faults.hear({ONE: RecoveryRequest(NONE, 160.0)})
    faults.take(event(109), 170.0, 0.0)
    assert told_after(faults) == ["109 critical/reset-gpu"]
    faults.hear({ONE: RecoveryRequest(NONE, 160.0)})
    assert told_after(faults) == ["109 critical/reset-gpu"]
    faults.hear({ONE: RecoveryRequest(NONE, 220.0)})
    assert told_after(faults) == ["109 app/none"]


@pytest.mark.parametrize("code", [13, 48, 62, 79, 95, 119, 140])
def test_a_driver_that_wants_nothing_changes_no_other_xid_and_ends_none(code: int) -> None:
    quiet, asked = KernelFaults(), KernelFaults()
    for faults in (quiet, asked):
        faults.take(event(code), 100.0, 0.0)
    assert asked.hear({ONE: RecoveryRequest(NONE, 160.0)}) == (False, [])
    assert asked.findings() == quiet.findings()


def test_where_the_driver_answers_it_has_to_say_none_too_before_faults_are_over() -> None:
    faults = KernelFaults()
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(event(95), 100.0, 0.0)
    assert faults.take(named(NONE), 110.0, 0.0) == (False, [])
    for at, number in ((105.0, NONE), (150.0, RESET)):
        assert faults.hear({ONE: RecoveryRequest(number, at)}) == (False, []), (
            "asked too early, or it still wants one"
        )
    changed, ended = faults.hear({ONE: RecoveryRequest(NONE, 210.0)})
    assert changed
    assert [each.code for each in ended] == ["95"]
    assert codes(faults) == []


def test_what_came_after_the_all_clear_stays_when_the_driver_confirms_it() -> None:
    faults = KernelFaults()
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(event(95), 100.0, 0.0)
    faults.take(event(95, gpu="43"), 100.0, 0.0)
    faults.take(named(NONE), 110.0, 0.0)
    faults.take(event(62), 120.0, 0.0)
    faults.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert sorted(map(str, codes(faults))) == ["62", "95"]


def test_a_new_wish_in_the_log_takes_the_all_clear_back() -> None:
    faults = KernelFaults()
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(event(95), 100.0, 0.0)
    faults.take(named(NONE), 110.0, 0.0)
    faults.take(named(RESET), 120.0, 0.0)
    faults.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert "95" in codes(faults)


@pytest.mark.parametrize(
    "requests",
    [{}, {TWO: RecoveryRequest(RESET, 90.0)}, {ONE: RecoveryRequest(RESET, 109.0 - ANSWER_SECONDS)}],
)
def test_where_the_driver_does_not_answer_the_all_clear_decides_alone(
    requests: dict[str, RecoveryRequest],
) -> None:
    faults = KernelFaults()
    faults.hear(requests)
    faults.take(event(95), 100.0, 0.0)
    assert [each.code for each in faults.take(named(NONE), 110.0, 0.0)[1]] == ["95"]


def test_a_driver_that_falls_silent_after_the_all_clear_holds_it_up_for_three_polls() -> None:
    faults = KernelFaults()
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(event(95), 100.0, 0.0)
    faults.take(named(NONE), 110.0, 0.0)
    faults.hear({ONE: RecoveryRequest(RESET, 150.0)})
    assert not faults.expire(150.0 + ANSWER_SECONDS)
    assert faults.expire(151.0 + ANSWER_SECONDS)
    assert codes(faults) == []


def test_an_all_clear_that_waits_outlives_a_restart() -> None:
    faults = KernelFaults()
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(event(95), 100.0, 0.0)
    faults.take(named(NONE), 110.0, 0.0)
    again = KernelFaults("", faults.kept)
    assert again.hear({ONE: RecoveryRequest(NONE, 150.0)})[0]
    assert codes(again) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("EXT4-fs error (device sda1) in ext4_free_blocks:1: IO failure", "ext4-error"),
        ("NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)", "rm-init-failed"),
    ],
)
def test_an_all_clear_ends_xids_only(text: str, code: str) -> None:
    faults = KernelFaults()
    (lost,) = KernelLogReader().events(KernelLine((text,)), 1)
    faults.hear({ONE: RecoveryRequest(RESET, 90.0)})
    faults.take(lost, 100.0, 0.0)
    faults.take(named(NONE), 110.0, 0.0)
    faults.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert codes(faults) == [code]


def test_evidence_that_ended_while_the_agent_was_away_changes_nothing_any_more() -> None:
    faults = KernelFaults()
    faults.take(event(119), 0.0, 0.0)
    faults.take_evidence((HANG,))
    again = KernelFaults("", msgspec.json.decode(msgspec.json.encode(faults.kept), type=SavedFaults))
    again.take_evidence(())
    assert told_after(again) == ["119 critical/reset-gpu"]


def test_a_recovery_that_nvml_gives_is_not_a_companions() -> None:
    faults = KernelFaults()
    faults.take_evidence((ASKS_FOR_REBOOT,))
    faults.take(event(95), 0.0, 0.0)
    assert told_after(faults) == ["95 critical/reboot"]
    faults.take(event(48), 1.0, 0.0)
    assert told_after(faults) == ["95 critical/reset-gpu", "48 critical/reboot"]


def test_a_lost_gpu_that_gets_its_xid_is_decided_by_what_nvml_gives() -> None:
    faults = KernelFaults()
    faults.take_evidence((ASKS_FOR_REBOOT,))
    faults.take(said("NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."), 0.0, 0.0)
    assert told_after(faults) == ["gpu-lost critical/failover"]
    faults.take(event(79), 1.0, 0.0)
    assert told_after(faults) == ["79 critical/reboot"]


def test_a_109_that_belongs_to_another_fault_stays_as_it_is_when_the_driver_wants_nothing() -> None:
    faults = KernelFaults()
    faults.take(event(13), 100.0, 0.0)
    faults.take(event(109), 101.0, 0.0)
    assert faults.hear({ONE: RecoveryRequest(NONE, 160.0)}) == (False, [])
    assert "109 critical/reset-gpu" in told_after(faults)
