"""What is remembered of each GPU and each link, across jobs, days and boots (M4, sections 3.4, 3.6 and 4)."""

import msgspec
import pytest

from checks.finding import Action, Severity
from checks.kernel.faults.kernel_faults import KernelFaults, SavedFaults
from checks.kernel.faults.recurrence import LINKS_KEPT, VISITS_KEPT, GpuIdentity, RecurrenceMemory, Remembered
from checks.kernel.faults.relations import DAY_SECONDS
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.line import KernelLine

GPUS = ("1b", "43", "52")
DAY = DAY_SECONDS
WEEK = 7 * DAY
START = 1_790_000_000.0
ONE = "0000:1b:00.0"
SICK = "0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00040000"
MARGINAL = "0x00200000, 0x00000000, 0x00000000, 0x00000000, 0x00000000"


def parsed(text: str) -> KernelEvent:
    (found,) = KernelLogReader().events(KernelLine((text,)), 1)
    return found


def event(code: int, gpu: str = "1b", pid: int | str = 1, unit: str = "GPC 3, TPC 2") -> KernelEvent:
    rest = (
        f"Graphics SM Warp Exception on ({unit}, SM 1): Out Of Range Address" if code == 13 else "MMU Fault"
    )
    return parsed(f"NVRM: Xid (PCI:0000:{gpu}:00): {code}, pid={pid}, name=train, {rest}")


def nvlink(link: int = 5, gpu: str = "1b", registers: str = SICK) -> KernelEvent:
    return parsed(
        f"NVRM: Xid (PCI:0000:{gpu}:00): 74, pid=1, NVLink: fatal error detected on link {link}"
        f"({registers}, 0x00000000, 0x00000000)"
    )


def switch(code: int = 20009, link: str = ", Link 37", word: str = "Non-fatal") -> KernelEvent:
    return parsed(f"nvidia-nvswitch2: SXid (PCI:0000:c2:00.0): {code}, {word}{link} RX Short Error Rate")


def verdict(event: KernelEvent) -> str:
    return f"{event.severity}/{event.action}"


class Node:
    """What one node remembers, over boots. `at` is seconds of real time, `wrong` what its clock is ahead."""

    def __init__(self) -> None:
        self.boots, self.booted, self.wrong = 0, 0.0, 0.0
        self.repeats = RecurrenceMemory("boot 0")
        self.boards: dict[str, GpuIdentity] = {}

    def boot(self, at: float) -> None:
        self.boots, self.booted = self.boots + 1, at
        saved = msgspec.json.decode(msgspec.json.encode(self.repeats.remembered), type=Remembered)
        self.repeats = RecurrenceMemory(f"boot {self.boots}", saved)

    def meet(self, met: KernelEvent, at: float) -> str:
        board = self.boards.get(met.gpu, GpuIdentity(met.gpu)) if met.gpu else None
        return verdict(self.repeats.judge(met, board, at - self.booted, START + at + self.wrong))


def judged(*met: tuple[float, KernelEvent]) -> list[str]:
    """Return severity/action of each event in turn."""
    node = Node()
    return [node.meet(each, at) for at, each in met]


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


def test_a_job_that_fails_for_days_still_counts_beside_another() -> None:
    node = Node()
    node.meet(event(31, pid=1), 0.0)
    node.meet(event(31, pid=1), 3 * DAY)
    assert node.meet(event(31, pid=2), 3 * DAY + 500.0) == "warning/ask"


def test_a_job_of_the_boot_before_counts_even_with_the_same_pid() -> None:
    node = Node()
    node.meet(event(31), 100.0)
    node.boot(3600.0)
    assert node.meet(event(31), 4000.0) == "warning/ask"


def test_a_job_of_the_boot_before_is_forgotten_after_a_day_too() -> None:
    node = Node()
    node.meet(event(31), 100.0)
    node.boot(3600.0)
    assert node.meet(event(31), 101.0 + DAY) == "app/none"


@pytest.mark.parametrize("wrong", [400 * DAY, -400 * DAY])
def test_what_a_clock_far_off_has_stamped_does_not_count_for_ever(wrong: float) -> None:
    node = Node()
    node.wrong = wrong
    node.meet(event(31), 100.0)
    node.boot(3600.0)
    node.wrong = 0.0
    assert node.meet(event(31), 4000.0) == "app/none"


def test_a_clock_that_jumps_within_a_boot_changes_nothing() -> None:
    node = Node()
    node.meet(event(31, pid=1), 100.0)
    node.wrong = 400 * DAY
    assert node.meet(event(31, pid=2), 4000.0) == "warning/ask"


def test_a_gpu_that_was_swapped_begins_with_a_clean_count() -> None:
    node = Node()
    node.boards[ONE] = GpuIdentity(ONE, uuid="GPU-a", serial="1650000000001")
    node.meet(event(31), 100.0)
    node.boot(3600.0)
    node.boards[ONE] = GpuIdentity(ONE, uuid="GPU-b", serial="1650000000002")
    assert node.meet(event(31), 4000.0) == "app/none"


def test_a_gpu_that_moved_to_another_slot_takes_its_count_along() -> None:
    node = Node()
    node.boards[ONE] = GpuIdentity(ONE, uuid="GPU-a", serial="1650000000001")
    node.meet(event(31), 100.0)
    node.boot(3600.0)
    node.boards["0000:43:00.0"] = GpuIdentity("0000:43:00.0", serial="1650000000001")
    assert node.meet(event(31, gpu="43"), 4000.0) == "warning/ask"


def test_the_third_hardware_fault_of_one_link_in_a_week_is_a_failover() -> None:
    met = [(at, nvlink()) for at in (0.0, 3 * DAY, WEEK, WEEK + 3600.0)]
    assert judged(*met) == [*["critical/reset-gpu"] * 2, *["critical/failover"] * 2]


def test_the_third_fault_after_more_than_a_week_is_a_second_one() -> None:
    assert judged(*((at, nvlink()) for at in (0.0, 3 * DAY, WEEK + 1.0)))[-1] == "critical/reset-gpu"


def test_the_lines_of_one_burst_are_one_time() -> None:
    assert set(judged(*((at * 590.0, nvlink()) for at in range(50)))) == {"critical/reset-gpu"}


@pytest.mark.parametrize("other", [nvlink(link=6), nvlink(gpu="43"), nvlink(registers=MARGINAL)])
def test_another_link_another_gpu_and_another_kind_of_fault_do_not_count(other: KernelEvent) -> None:
    assert judged((0.0, nvlink()), (DAY, other), (2 * DAY, nvlink()))[-1] == "critical/reset-gpu"


def test_a_marginal_signal_is_no_failover_beside_what_happened_before() -> None:
    met = [(at * 3600.0, nvlink()) for at in range(3)]
    assert judged(*met, (4 * 3600.0, nvlink(registers=MARGINAL)))[-1] == "warning/ask"


def test_link_faults_are_counted_across_boots() -> None:
    node = Node()
    found = []
    for day in range(3):
        node.boot(day * DAY)
        found.append(node.meet(nvlink(), day * DAY + 600.0))
    assert found == ["critical/reset-gpu", "critical/reset-gpu", "critical/failover"]


def test_faults_right_before_and_right_after_a_reboot_are_two_times() -> None:
    node = Node()
    found = []
    for number in range(3):
        node.boot(number * 300.0)
        found.append(node.meet(nvlink(), number * 300.0 + 60.0))
    assert found[-1] == "critical/failover"


def test_a_milder_fault_of_a_link_is_told_as_it_is_whatever_the_boots_before_saw() -> None:
    before = KernelFaults("before")
    for day in range(3):
        before.take(nvlink(), day * DAY, START + day * DAY)
    after = KernelFaults("after", before.kept.of_next_boot())
    after.take(nvlink(registers=MARGINAL), 100.0, START + 3 * DAY)
    assert list(map(verdict, after.events)) == ["warning/ask"]
    assert [each.action for each in after.findings()] == [Action.ASK]


@pytest.mark.parametrize("code", [20009, 20010, 20012])
def test_a_switch_link_that_repeats_within_a_day_is_for_a_person(code: int) -> None:
    assert judged((0.0, switch(code)), (DAY, switch(code))) == ["warning/none", "warning/ask"]
    assert judged((0.0, switch(code)), (DAY + 1.0, switch(code))) == ["warning/none"] * 2


@pytest.mark.parametrize("other", [switch(link=", Link 38"), switch(code=20010), switch(link="")])
def test_another_switch_link_is_no_repeat(other: KernelEvent) -> None:
    assert judged((0.0, switch()), (3600.0, other))[-1] == "warning/none"


def test_a_fatal_word_is_not_made_milder_by_a_repeat() -> None:
    fatal = switch(word="Fatal")
    assert judged((0.0, fatal), (3600.0, fatal)) == [verdict(fatal)] * 2


def test_memory_is_bounded() -> None:
    node = Node()
    for number in range(2 * LINKS_KEPT):
        node.meet(event(31, pid=1, gpu=f"{number % 200:02x}", unit=str(number)), 61.0 * number)
        node.meet(event(31, pid=number), 61.0 * number)
        node.meet(nvlink(link=number % 300, gpu=f"{number % 7:02x}"), 700.0 * number)
    assert len(node.repeats.remembered.visits) <= VISITS_KEPT
    assert len(node.repeats.remembered.links) <= LINKS_KEPT


def test_a_repeated_application_fault_stays_told_when_it_is_quiet() -> None:
    faults = KernelFaults()
    faults.take(event(31, pid=1), 0.0, 0.0)
    assert faults.expire(601.0)
    faults.take(event(31, pid=2), 700.0, 0.0)
    assert not faults.expire(80_000.0)
    assert [each.severity for each in faults.findings()] == [Severity.WARNING]


def test_what_the_driver_asks_for_after_the_third_time_does_not_make_it_milder() -> None:
    faults = KernelFaults("boot")
    for day in range(3):
        faults.take(nvlink(), day * DAY, START + day * DAY)
    wish = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    faults.take(parsed(f"NVRM: Xid (PCI:0000:1b:00): 154, {wish}"), 2 * DAY + 1.0, START)
    assert {each.code: each.action for each in faults.findings()} == {
        "74": Action.FAILOVER,
        "154": Action.RESET_GPU,
    }


def test_who_a_gpu_is_reaches_what_was_met_before_it_was_known() -> None:
    first = KernelFaults("first")
    first.take(event(31), 100.0, START)
    first.learn(GpuIdentity(ONE, uuid="GPU-a"))
    first.learn(GpuIdentity(ONE, serial="1650000000001"))
    for serial, severity in (("1650000000002", Severity.APP), ("1650000000001", Severity.WARNING)):
        again = KernelFaults("second", first.kept.of_next_boot())
        again.learn(GpuIdentity(ONE, serial=serial))
        again.take(event(31), 100.0, START + 3600.0)
        assert [each.severity for each in again.findings()] == [severity]


def test_only_what_is_remembered_reaches_the_next_boot() -> None:
    faults = KernelFaults("first")
    faults.take(event(31), 100.0, START)
    faults.learn(GpuIdentity(ONE, uuid="GPU-a"))
    assert faults.kept.of_next_boot() == SavedFaults(remembered=faults.kept.remembered)
    assert faults.kept.remembered.visits
