"""What stands in the kernel log beside other witnesses: field 230, SRAM limits, hangs (M1, M5, M6)."""

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
WISHES = {NONE: "0x0 (None)", RESET: "0x1 (GPU Reset Required)", REBOOT: "0x2 (Node Reboot Required)"}


def event(code: int, gpu: str = "1b", rest: str = "MMU Fault", pid: int = 1) -> KernelEvent:
    return said(f"NVRM: Xid (PCI:0000:{gpu}:00): {code}, pid={pid}, name=train, {rest}")


def said(text: str) -> KernelEvent:
    (found,) = KernelLogReader().events(KernelLine((text,)), 1)
    return found


def wish(number: int, gpu: str = "1b") -> KernelEvent:
    """Return the Xid 154 by which the driver asks for a recovery action."""
    return event(154, gpu, f"GPU recovery action changed from 0x0 (None) to {WISHES[number]}")


def codes(standing: KernelFaults) -> list[str | None]:
    return [each.code for each in standing.events]


def witness(code: str, severity: Severity, action: Action, gpu: str | None = None) -> Finding:
    return Finding(
        check=code, subsystem="recovery", code=code, severity=severity, action=action, gpu=gpu,
        first_seen=0.0, last_seen=0.0,
    )  # fmt: skip


def told(met: KernelEvent, *witnesses: Finding) -> str:
    standing = KernelFaults()
    standing.take(met, 0.0, 0.0)
    standing.take_evidence(witnesses)
    (finding,) = standing.findings()
    return f"{finding.severity}/{finding.action}"


REBOOT_WISH = witness("recovery-action", Severity.CRITICAL, Action.REBOOT, "0000:1b:00.0")
HANG = witness("driver-unresponsive", Severity.CRITICAL, Action.REBOOT)
SLOW = witness("driver-unresponsive", Severity.WARNING, Action.NONE)
WORN = witness("sram-threshold", Severity.CRITICAL, Action.FAILOVER, "0000:1b:00.0")
STUCK = said("INFO: task nvidia-smi:4711 blocked for more than 120 seconds.")
STRANGE = witness("recovery-action", Severity.UNKNOWN, Action.ASK, "0000:1b:00.0")


@pytest.mark.parametrize(
    ("met", "witnesses", "verdict"),
    [
        (event(119), (), "critical/reset-gpu"),
        (event(119), (HANG,), "critical/reboot"),
        (event(120), (HANG,), "critical/reboot"),
        (event(119), (SLOW,), "critical/reset-gpu"),
        (event(95), (HANG,), "critical/reset-gpu"),
        (event(95), (REBOOT_WISH,), "critical/reboot"),
        (event(95, gpu="43"), (REBOOT_WISH,), "critical/reset-gpu"),
        (event(95), (STRANGE,), "critical/reset-gpu"),
        (event(45), (REBOOT_WISH,), "info/none"),
        (event(119), (REBOOT_WISH, HANG), "critical/reboot"),
        (event(48), (), "critical/reset-gpu"),
        (event(48), (WORN,), "critical/failover"),
        (event(172), (WORN,), "critical/failover"),
        (event(48), (REBOOT_WISH, WORN), "critical/failover"),
        (event(48, gpu="43"), (WORN,), "critical/reset-gpu"),
        (event(95), (WORN,), "critical/reset-gpu"),
        (STUCK, (), "warning/ask"),
        (STUCK, (SLOW,), "warning/ask"),
        (STUCK, (HANG,), "critical/reboot"),
    ],
)
def test_what_nvml_says_decides_about_what_the_kernel_log_says(
    met: KernelEvent, witnesses: tuple[Finding, ...], verdict: str
) -> None:
    assert told(met, *witnesses) == verdict


def test_a_witness_that_is_gone_decides_nothing_any_more() -> None:
    standing = KernelFaults()
    standing.take(event(119), 0.0, 0.0)
    standing.take_evidence((HANG,))
    assert standing.findings()[0].action is Action.REBOOT
    standing.take_evidence(())
    assert standing.findings()[0].action is Action.RESET_GPU


def told_after(standing: KernelFaults) -> list[str]:
    return [f"{each.code} {each.severity}/{each.action}" for each in standing.findings()]


def test_a_109_is_the_jobs_once_the_driver_was_asked_after_it_and_wants_nothing() -> None:
    standing = KernelFaults()
    standing.take(event(109), 100.0, 0.0)
    assert standing.hear({ONE: RecoveryRequest(NONE, 100.0)}) == (False, []), (
        "asked before the line, or just then"
    )
    assert told_after(standing) == ["109 critical/reset-gpu"]
    assert standing.hear({ONE: RecoveryRequest(NONE, 160.0)}) == (True, [])
    assert told_after(standing) == ["109 app/none"]
    assert standing.hear({ONE: RecoveryRequest(NONE, 220.0)}) == (False, []), "that is no news"
    assert standing.expire(700.0), "and it ages out like any application's fault"


@pytest.mark.parametrize(
    "wishes", [{TWO: RecoveryRequest(NONE, 160.0)}, {ONE: RecoveryRequest(RESET, 160.0)}, {}]
)
def test_a_109_stays_the_gpus_while_nobody_says_that_this_gpu_needs_nothing(
    wishes: dict[str, RecoveryRequest],
) -> None:
    standing = KernelFaults()
    standing.take(event(109), 100.0, 0.0)
    standing.hear(wishes)
    assert told_after(standing) == ["109 critical/reset-gpu"]


def test_a_109_that_comes_back_is_the_gpus_until_the_driver_is_asked_again() -> None:
    standing = KernelFaults()
    standing.take(event(109), 100.0, 0.0)
    standing.hear({ONE: RecoveryRequest(NONE, 160.0)})
    standing.take(event(109), 170.0, 0.0)
    assert told_after(standing) == ["109 critical/reset-gpu"]
    standing.hear({ONE: RecoveryRequest(NONE, 160.0)})
    assert told_after(standing) == ["109 critical/reset-gpu"]
    standing.hear({ONE: RecoveryRequest(NONE, 220.0)})
    assert told_after(standing) == ["109 app/none"]


@pytest.mark.parametrize("code", [13, 48, 62, 79, 95, 119, 140])
def test_a_driver_that_wants_nothing_changes_no_other_xid_and_ends_none(code: int) -> None:
    quiet, asked = KernelFaults(), KernelFaults()
    for standing in (quiet, asked):
        standing.take(event(code), 100.0, 0.0)
    assert asked.hear({ONE: RecoveryRequest(NONE, 160.0)}) == (False, [])
    assert asked.findings() == quiet.findings()


def test_where_the_driver_answers_it_has_to_say_none_too_before_faults_are_over() -> None:
    standing = KernelFaults()
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(event(95), 100.0, 0.0)
    assert standing.take(wish(NONE), 110.0, 0.0) == (False, [])
    for at, number in ((105.0, NONE), (150.0, RESET)):
        assert standing.hear({ONE: RecoveryRequest(number, at)}) == (False, []), (
            "asked too early, or it still wants one"
        )
    changed, ended = standing.hear({ONE: RecoveryRequest(NONE, 210.0)})
    assert changed
    assert [each.code for each in ended] == ["95"]
    assert codes(standing) == []


def test_what_came_after_the_all_clear_stays_when_the_driver_confirms_it() -> None:
    standing = KernelFaults()
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(event(95), 100.0, 0.0)
    standing.take(event(95, gpu="43"), 100.0, 0.0)
    standing.take(wish(NONE), 110.0, 0.0)
    standing.take(event(62), 120.0, 0.0)
    standing.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert sorted(map(str, codes(standing))) == ["62", "95"]


def test_a_new_wish_in_the_log_takes_the_all_clear_back() -> None:
    standing = KernelFaults()
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(event(95), 100.0, 0.0)
    standing.take(wish(NONE), 110.0, 0.0)
    standing.take(wish(RESET), 120.0, 0.0)
    standing.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert "95" in codes(standing)


@pytest.mark.parametrize(
    "wishes", [{}, {TWO: RecoveryRequest(RESET, 90.0)}, {ONE: RecoveryRequest(RESET, 109.0 - ANSWER_SECONDS)}]
)
def test_where_the_driver_does_not_answer_the_all_clear_decides_alone(
    wishes: dict[str, RecoveryRequest],
) -> None:
    standing = KernelFaults()
    standing.hear(wishes)
    standing.take(event(95), 100.0, 0.0)
    assert [each.code for each in standing.take(wish(NONE), 110.0, 0.0)[1]] == ["95"]


def test_a_driver_that_falls_silent_after_the_all_clear_holds_it_up_for_three_polls() -> None:
    standing = KernelFaults()
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(event(95), 100.0, 0.0)
    standing.take(wish(NONE), 110.0, 0.0)
    standing.hear({ONE: RecoveryRequest(RESET, 150.0)})
    assert not standing.expire(150.0 + ANSWER_SECONDS)
    assert standing.expire(151.0 + ANSWER_SECONDS)
    assert codes(standing) == []


def test_an_all_clear_that_waits_outlives_a_restart() -> None:
    standing = KernelFaults()
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(event(95), 100.0, 0.0)
    standing.take(wish(NONE), 110.0, 0.0)
    again = KernelFaults("", standing.kept)
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
    standing = KernelFaults()
    (lost,) = KernelLogReader().events(KernelLine((text,)), 1)
    standing.hear({ONE: RecoveryRequest(RESET, 90.0)})
    standing.take(lost, 100.0, 0.0)
    standing.take(wish(NONE), 110.0, 0.0)
    standing.hear({ONE: RecoveryRequest(NONE, 150.0)})
    assert codes(standing) == [code]


def test_evidence_that_ended_while_the_agent_was_away_changes_nothing_any_more() -> None:
    standing = KernelFaults()
    standing.take(event(119), 0.0, 0.0)
    standing.take_evidence((HANG,))
    again = KernelFaults("", msgspec.json.decode(msgspec.json.encode(standing.kept), type=SavedFaults))
    again.take_evidence(())
    assert told_after(again) == ["119 critical/reset-gpu"]
