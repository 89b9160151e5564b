"""What stands in the kernel log beside other witnesses (M1, M6), and under several jobs (M4)."""

import pytest

from checks.finding import Action, Finding, Severity
from checks.kernel.classify import Reader
from checks.kernel.event import Event
from checks.kernel.jobs import DAY_SECONDS, VISITS_KEPT, Trail
from checks.kernel.line import Line
from checks.kernel.standing import Standing

GPUS = ("1b", "43", "52")
DAY = DAY_SECONDS


def event(code: int, gpu: str = "1b", pid: int | str = 1, unit: str = "GPC 3, TPC 2") -> Event:
    rest = (
        f"Graphics SM Warp Exception on ({unit}, SM 1): Out Of Range Address" if code == 13 else "MMU Fault"
    )
    text = f"NVRM: Xid (PCI:0000:{gpu}:00): {code}, pid={pid}, name=train, {rest}"
    (found,) = Reader().events(Line((text,)), 1)
    return found


def judged(*met: tuple[float, Event]) -> list[str]:
    """Return severity/action of each event in turn."""
    trail = Trail()
    found = []
    for at, each in met:
        verdict = trail.judge(each, at)
        found.append(f"{verdict.severity}/{verdict.action}")
    return found


@pytest.mark.parametrize("code", [13, 31])
def test_one_job_is_the_jobs_fault_however_often_it_fails(code: int) -> None:
    assert set(judged(*((at * 100.0, event(code)) for at in range(50)))) == {"app/none"}


@pytest.mark.parametrize("code", [13, 31])
def test_a_second_job_within_a_day_makes_it_the_gpus(code: int) -> None:
    assert judged((0.0, event(code, pid=1)), (DAY, event(code, pid=2))) == ["app/none", "warning/ask"]
    assert judged((0.0, event(code, pid=1)), (DAY + 1, event(code, pid=2))) == ["app/none", "app/none"]


def test_a_warp_exception_has_to_be_in_the_same_unit() -> None:
    first, other = event(13, pid=1), event(13, pid=2, unit="GPC 3, TPC 4")
    assert judged((0.0, first), (500.0, other)) == ["app/none", "app/none"]


def test_the_same_code_on_several_gpus_is_the_jobs_however_often_it_is_started() -> None:
    met = [
        (start + place, event(31, gpu, pid=10 * int(start) + place))
        for start in (0.0, 3600.0, 7200.0)
        for place, gpu in enumerate(GPUS)
    ]
    assert set(judged(*met)) == {"app/none"}


def test_processes_of_one_job_within_a_minute_are_one_job() -> None:
    assert judged(*((at * 10.0, event(31, pid=at + 1)) for at in range(6))) == ["app/none"] * 6


@pytest.mark.parametrize("pid", ["'<unknown>'", "<unknown>"])
def test_a_victim_that_is_not_named_is_no_second_job(pid: str) -> None:
    assert judged((0.0, event(31, pid=pid)), (500.0, event(31, pid=pid))) == ["app/none"] * 2


def test_other_codes_are_left_as_they_are() -> None:
    assert judged((0.0, event(79, pid=1)), (500.0, event(79, pid=2))) == ["critical/failover"] * 2


def test_memory_of_jobs_is_bounded_and_outlives_a_restart() -> None:
    trail = Trail()
    for number in range(2 * VISITS_KEPT):
        trail.judge(event(13, pid=number, unit=f"GPC {number % 300}, TPC {number % 200}"), 61.0 * number)
    assert len(trail.visits) <= VISITS_KEPT
    first = Trail()
    first.judge(event(31, pid=1), 0.0)
    assert Trail(first.visits).judge(event(31, pid=2), 500.0).severity is Severity.WARNING


def witness(code: str, severity: Severity, action: Action, gpu: str | None = None) -> Finding:
    return Finding(
        check=code, subsystem="recovery", code=code, severity=severity, action=action, gpu=gpu,
        first_seen=0.0, last_seen=0.0,
    )  # fmt: skip


def told(met: Event, *witnesses: Finding) -> str:
    standing = Standing()
    standing.take(met, 0.0, 0.0)
    (finding,) = standing.findings(witnesses)
    return f"{finding.severity}/{finding.action}"


REBOOT_WISH = witness("recovery-action", Severity.CRITICAL, Action.REBOOT, "0000:1b:00.0")
HANG = witness("driver-unresponsive", Severity.CRITICAL, Action.REBOOT)
SLOW = witness("driver-unresponsive", Severity.WARNING, Action.NONE)
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
    ],
)
def test_what_nvml_says_decides_about_xids(met: Event, witnesses: tuple[Finding, ...], verdict: str) -> None:
    assert told(met, *witnesses) == verdict


def test_a_witness_that_is_gone_decides_nothing_any_more() -> None:
    standing = Standing()
    standing.take(event(119), 0.0, 0.0)
    assert standing.findings((HANG,))[0].action is Action.REBOOT
    assert standing.findings(())[0].action is Action.RESET_GPU


def test_a_repeated_application_fault_stays_told_when_it_is_quiet() -> None:
    standing = Standing()
    standing.take(event(31, pid=1), 0.0, 0.0)
    assert standing.expire(601.0)
    standing.take(event(31, pid=2), 700.0, 0.0)
    assert not standing.expire(80_000.0)
    assert [each.severity for each in standing.findings(())] == [Severity.WARNING]
