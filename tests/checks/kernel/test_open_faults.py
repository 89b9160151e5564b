"""Which lines are one fault, and what one fault's second line does to its first."""

import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from checks.kernel.classify import Classifier
from checks.kernel.faults import judgement, relations
from checks.kernel.faults.fault import OpenFault
from checks.kernel.faults.open_faults import OPEN_LIMIT, OpenFaults
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import parse

GPU = "PCI:0000:3d:00"
RESET = "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
REBOOT = "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
NONE = "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
EVAL = "145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 09 (0x040c54e2 0x00000008 0x0 0x0 0x0 0x0)"
TIMEOUT = (
    "mlx5_core 0000:9a:00.0: wait_func:1158:(pid 871): ENABLE_HCA(0x104) timeout. "
    "Will cause a leak of a command resource"
)
LOCKUP = "watchdog: BUG: soft lockup - CPU#7 stuck for 26s! [kworker/7:1:871]"
P2P = "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"


def xid(second: float, text: str, gpu: str = GPU) -> str:
    return f"[{second:.6f}] NVRM: Xid ({gpu}): {text}"


def events(*lines: str) -> list[KernelEvent]:
    classifier, found, now = Classifier(), [], time.time()
    for number, line in enumerate(lines, start=1):
        found += classifier.feed(line.encode(), number, now)
    return [*found, *classifier.finish()]


def verdicts(*lines: str) -> dict[str, str]:
    return {f"{each.code}": f"{each.severity}/{each.action}" for each in events(*lines)}


def parents(*lines: str) -> dict[str, str | None]:
    return {f"{each.code}": each.companion_of for each in events(*lines)}


def test_two_gpus_with_one_code_are_two_faults() -> None:
    assert [each.count for each in events(xid(1, "79"), xid(2, "79", "PCI:0000:9d:00"))] == [1, 1]


def test_two_links_of_one_gpu_are_two_faults() -> None:
    link = "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link {} (0x000c9226 0x00000002 0x0 0x0 0x0 0x0)"
    assert [each.count for each in events(xid(1, link.format("06")), xid(2, link.format("07")))] == [1, 1]


def test_a_154_near_an_xid_replaces_its_action() -> None:
    assert verdicts(xid(1, "48"), xid(5, REBOOT))["48"] == "critical/reboot"
    assert verdicts(xid(1, REBOOT), xid(5, "48"))["48"] == "critical/reboot"
    assert verdicts(xid(1, "159"), xid(5, P2P))["159"] == "warning/ask"


def test_a_154_far_away_or_of_another_gpu_replaces_nothing() -> None:
    assert verdicts(xid(1, "48"), xid(12, REBOOT))["48"] == "critical/reset-gpu"
    assert verdicts(xid(1, "48"), xid(2, REBOOT, "PCI:0000:9d:00"))["48"] == "critical/reset-gpu"


def test_a_154_beats_the_row_of_an_nvlink5_sub_code() -> None:
    assert verdicts(xid(1, EVAL))["145"] == "app/none"
    assert verdicts(xid(1, EVAL), xid(2, RESET))["145"] == "critical/reset-gpu"


def test_a_154_to_none_lowers_a_109_only() -> None:
    assert verdicts(xid(1, "109, CTX SWITCH TIMEOUT"), xid(2, NONE))["109"] == "app/none"
    assert verdicts(xid(1, "119"), xid(2, NONE))["119"] == "critical/reset-gpu"


def test_an_unreadable_154_replaces_nothing() -> None:
    assert verdicts(xid(1, "48"), xid(2, "154, ("))["48"] == "critical/reset-gpu"


def test_a_154_that_changes_its_mind_is_one_fault_with_the_newer_verdict() -> None:
    (event,) = events(xid(1, RESET), xid(2, REBOOT))
    assert (event.count, event.action, event.lines) == (2, "reboot", (1, 2))


def test_a_45_is_the_companion_of_what_came_before_it_and_stays_harmless() -> None:
    lines = (xid(1, "62"), xid(2, "45, pid=1"), xid(3, RESET))
    assert parents(*lines)["45"] == "62"
    assert verdicts(*lines)["45"] == "info/none"


def test_the_cause_that_the_driver_names_is_the_parent() -> None:
    assert parents(xid(1, "45, pid=1, name=a, Ch 2 caused by previous Xid 149"))["45"] == "149"


def test_a_companion_of_the_catalogue_needs_the_same_gpu_and_ten_seconds() -> None:
    assert parents(xid(1, "48"), xid(2, "63"))["63"] == "48"
    assert parents(xid(1, "48"), xid(20, "63"))["63"] is None
    assert parents(xid(1, "48"), xid(2, "63", "PCI:0000:9d:00"))["63"] is None


def test_a_lost_gpu_and_its_79_are_one_event_in_any_order() -> None:
    lost = "[1.5] NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."
    for lines in ((lost, xid(2, "79")), (xid(1, "79"), lost)):
        (event,) = events(*lines)
        assert (event.code, event.count, event.lines) == ("79", 1, (1, 2))


def test_a_gpu_that_is_lost_again_is_counted_on() -> None:
    lost = "[100.0] NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus."
    (event,) = events(xid(1, "79"), lost, xid(101, "79"))
    assert (event.code, event.count) == ("79", 2)


def test_another_lost_gpu_is_a_fault_of_its_own() -> None:
    lost = "[1.5] NVRM: GPU 0000:9d:00.0: GPU has fallen off the bus."
    assert [each.code for each in events(xid(1, "79"), lost)] == ["79", "gpu-lost"]


def test_lines_of_one_physical_fault_name_their_parent() -> None:
    lines = (
        "[1.0] pcieport 0000:20:01.0: AER: Uncorrected (Fatal) error received: 0000:20:01.0",
        xid(1.5, "79"),
        "[2.0] nvidia 0000:3d:00.0: AER: can't recover (no error_detected callback)",
        "[3.0] nvidia-nvswitch0: SXid (PCI:0000:1f:00.0): 20034, Fatal, Link 37 LTSSM OpenFault Up",
        "[4.0] NVRM: The NVIDIA probe routine failed for 1 device(s).",
    )
    found = parents(*lines)
    assert (found["aer-fatal"], found["20034"], found["probe-failed"]) == ("79", "79", None)
    assert verdicts(*lines)["aer-no-recovery"] == "critical/failover"


def test_a_failed_probe_joins_the_gpu_that_did_not_start() -> None:
    found = parents(
        "[1.0] NVRM: GPU 0000:3d:00.0: RmInitAdapter failed! (0x12:0x44:2461)",
        "[2.0] NVRM: The NVIDIA probe routine failed for 1 device(s).",
    )
    assert found["probe-failed"] == "rm-init-failed"


def test_a_network_driver_that_times_out_beside_a_stuck_processor_asks_for_a_reboot() -> None:
    timeout, lockup = f"[{{}}.0] {TIMEOUT}", f"[{{}}.0] {LOCKUP}"
    assert verdicts(timeout.format(1), lockup.format(70)) == {
        "mlx5-cmd-timeout": "critical/failover",
        "soft-lockup": "warning/none",
    }
    both = {"mlx5-cmd-timeout": "critical/reboot", "soft-lockup": "critical/reboot"}
    assert verdicts(timeout.format(1), lockup.format(50)) == both
    assert verdicts(lockup.format(1), timeout.format(50)) == both
    assert verdicts(timeout.format(1), lockup.format(90), timeout.format(100)) == both
    assert verdicts(timeout.format(1), lockup.format(50), timeout.format(300)) == both, "it stays wedged"
    assert parents(lockup.format(1), timeout.format(50))["soft-lockup"] == "mlx5-cmd-timeout"
    rules = {each.rule for each in events(timeout.format(1), *map(lockup.format, (2, 3, 4)))}
    assert rules == {relations.WEDGED.rule}, "and the third lockup says nothing new"


def test_the_worse_verdict_of_one_key_stays() -> None:
    words = "94, pid=1, Contained: x. RST: {}, D-RST: No"
    for order in (("No", "Yes"), ("Yes", "No")):
        (event,) = events(*(xid(second, words.format(word)) for second, word in enumerate(order)))
        assert (event.severity, event.action) == ("critical", "reset-gpu")


def test_a_bus_error_without_its_announcement_is_counted() -> None:
    line = "[{}.0] pcieport 0000:60:01.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (x)"
    (event,) = events(*(line.format(second) for second in range(5)))
    assert event.count == 5


def test_announced_bus_errors_are_counted_once_each() -> None:
    lines = []
    for second in range(5):
        lines.append(f"[{second}.0] pcieport 0000:60:01.1: AER: Corrected error received: 0000:60:01.1")
        lines.append(f"[{second}.1] pcieport 0000:60:01.1: PCIe Bus Error: severity=Corrected, type=x")
    (event,) = events(*lines)
    assert event.count == 5


def test_the_number_of_open_faults_is_bounded() -> None:
    faults, closed = OpenFaults(), 0
    for number in range(OPEN_LIMIT + 500):
        faults.add(KernelEvent(code="x", subsystem="nfs", device=str(number)), at=0.0)
        closed += len(faults.expire(0.0))
    assert (len(faults), closed) == (OPEN_LIMIT, 500)


def test_a_fault_costs_as_much_beside_thousands_of_others() -> None:
    spent = {}
    for gpus in (16, OPEN_LIMIT):
        faults, began = OpenFaults(), time.process_time()
        for number in range(OPEN_LIMIT):
            gpu = f"{number % gpus:04x}:1b:00.0"
            faults.add(KernelEvent(code=f"{number // gpus % 16}", subsystem="xid", gpu=gpu), at=0.0)
        spent[gpus] = time.process_time() - began
    assert spent[OPEN_LIMIT] < 1.0, spent


DISTINCT = (
    *(f"NVRM: Xid (PCI:0000:{bus}:00): {code}, x" for bus in ("3d", "9d") for code in (13, 45, 48, 63, 79)),
    *(f"NVRM: Xid ({GPU}): {code}, x" for code in (32, 74, 94, 95, 109, 110, 160, 171, 999, RESET, NONE)),
    f"NVRM: Xid (PCI:0000:9d:00): {REBOOT}",
    f"NVRM: Xid ({GPU}): {EVAL}",
    "NVRM: Xid (nowhere): 48, x",
    *(f"NVRM: GPU 0000:{bus}:00.0: GPU has fallen off the bus." for bus in ("3d", "9d")),
    "NVRM: GPU 0000:3d:00.0: RmInitAdapter failed! (0x12:0x44:2461)",
    "NVRM: GPU 0000:3d:00.0: Cannot initialize GSP firmware RM",
    "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "nvidia-nvswitch0: SXid (PCI:0000:1f:00.0): 20034, Fatal, Link 37 LTSSM OpenFault Up",
    *(f"pcieport 0000:{bus}:01.0: AER: Uncorrected (Fatal) error received: x" for bus in ("20", "30")),
    "nvidia 0000:3d:00.0: AER: can't recover (no error_detected callback)",
    "pcieport 0000:20:01.0: AER: device recovery failed",
    "pcieport 0000:20:01.0: pciehp: Slot(1): Surprise Down",
    "nfs: server a not responding, still trying",
    TIMEOUT,
    LOCKUP,
)
STEPS = st.sampled_from((0.0, 0.4, 3.0, 9.0, 11.0, 35.0, 61.0))


@given(st.permutations(DISTINCT), st.lists(STEPS, min_size=len(DISTINCT), max_size=len(DISTINCT)))
def test_what_faults_do_to_each_other_is_what_asking_every_pair_would_give(
    texts: list[str], steps: list[float]
) -> None:
    told = [
        (event, at)
        for text, at in zip(texts, itertools.accumulate(steps), strict=True)
        if (event := parse(text, None))
    ]
    faults = OpenFaults()
    for event, at in told:
        faults.add(event, at)
    assert [fault.event for fault in faults] == pairwise(told)


def pairwise(told: list[tuple[KernelEvent, float]]) -> list[KernelEvent]:
    """Return what becomes of faults when each new one is asked about every other one, the newest first."""
    faults: list[OpenFault] = []
    for event, at in told:
        recent = [each for each in reversed(faults) if at - each.last_at <= relations.INCIDENT_SECONDS]
        newest = absorbed(event, at, faults) or OpenFault(event, at, at)
        if newest in faults:
            # A lost GPU that gets its Xid is the newest fault, an Xid that hears of it again is not.
            faults.sort(key=lambda fault: fault is newest and fault.event.code == event.code)
            continue
        for other in recent:
            newest.event = judgement.beside(newest.event, other.event, at - other.last_at)
            other.event = judgement.beside(other.event, newest.event, at - other.last_at)
        if event.kind == relations.RECOVERY_ACTION:
            for other in faults:
                if other.event.rule in relations.SETTLED:
                    decide(other, newest.event)
        faults.append(newest)
    return [fault.event for fault in faults]


def decide(fault: OpenFault, decision: KernelEvent) -> None:
    event = judgement.decided(fault.event, decision)
    fault.event = event if event.rule in relations.SETTLED else fault.event


def absorbed(event: KernelEvent, at: float, faults: list[OpenFault]) -> OpenFault | None:
    """Return the fault that `event` has become one with, if there is one."""
    recent = [each for each in reversed(faults) if at - each.last_at <= relations.INCIDENT_SECONDS]
    for fault in recent:
        if judgement.absorbs(event, fault.event):
            fault.event, fault.last_at = event, at
            for decision in faults:
                times = (abs(when - decision.last_at) for when in (fault.first_at, at))
                is_one = decision.event.kind == relations.RECOVERY_ACTION and decision.event.device is None
                if is_one and any(apart <= relations.DECISION_SECONDS for apart in times):
                    decide(fault, decision.event)
            return fault
        if judgement.absorbs(fault.event, event):
            return fault
    return None
