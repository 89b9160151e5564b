"""The state of a node: what doors bring, what the checks are told, what another boot and a restart keep."""

from pathlib import Path

import msgspec

from checks.agent.node_state import NUMBERS_AHEAD, NodeState
from checks.agent.state_file import StateFile
from checks.check import CheckContext, CheckResult, NodeFacts, run_check
from checks.debounce import Instant
from checks.gpu import driver_unresponsive
from checks.gpu_sample import BoardSample as BoardFacts
from checks.gpu_sample import GpuSample, GpuSnapshot
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.line import KernelLine
from checks.policy import Policy
from checks.report import Gpu, Inventory, ReportAccepted, decode, encode

ONE, TWO = "0000:1b:00.0", "0000:43:00.0"
START = 1_790_000_000.0
SEEN = Inventory(gpus=(Gpu(address=ONE, uuid="GPU-a", model="NVIDIA H100 80GB HBM3"),))


class Node:
    """One node over restarts of its agent and over boots; `booted` is when the boot began."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.booted = 0.0
        self.boot("first")

    def boot(self, boot_id: str, at: float = 0.0) -> None:
        self.booted = at
        self.state = NodeState(StateFile(self.directory), boot_id)

    def log(self, text: str, at: float) -> None:
        events = KernelLogReader().events(KernelLine((f"NVRM: {text}",)), 1)
        moment = Instant(START + at, at - self.booted)
        self.state.kernel.record([(each, moment) for each in events], None, None)

    def verdicts(self) -> list[str]:
        return [f"{each.code} {each.severity}/{each.action}" for each in self.state.findings()[0]]


def xid(code: int, gpu: str = "1b", pid: int = 1) -> str:
    return f"Xid (PCI:0000:{gpu}:00): {code}, pid={pid}, name=train, MMU Fault"


def sampled(asked_at: float, action: int | None = 0, gpu: str = ONE, failed: int = 0) -> GpuSnapshot:
    board = BoardFacts(uuid="GPU-a", serial="1653923026510")
    return GpuSnapshot(
        samples=(GpuSample(gpu=gpu, asked_at=asked_at, recovery_action=action, failed=failed, board=board),)
    )


def test_a_driver_that_needs_nothing_after_a_109_is_heard_and_told_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.log(xid(109), 100.0)
    before = node.state.revision
    for fetched in (sampled(90.0), sampled(160.0, gpu=TWO), sampled(160.0, None), sampled(160.0, failed=15)):
        node.state.kernel.record_gpus(fetched)
        assert node.verdicts() == ["109 critical/reset-gpu"]
    assert node.state.revision == before
    node.state.kernel.record_gpus(sampled(160.0))
    assert node.verdicts() == ["109 app/none"]
    assert node.state.revision != before
    node.state.save()
    node.boot("first")
    assert node.verdicts() == ["109 app/none"]


def test_an_all_clear_that_the_driver_confirms_ends_the_finding(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.state.kernel.record_gpus(sampled(90.0, 1))
    node.log(xid(95), 100.0)
    node.log("Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)", 110.0)
    assert node.verdicts() == ["95 critical/reset-gpu"]
    before = node.state.revision
    node.state.kernel.record_gpus(sampled(150.0))
    assert node.verdicts() == []
    assert node.state.revision != before


def test_checks_are_told_which_gpus_have_met_memory_errors_and_when_last(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.state.facts().memory_suspects == {}
    for code, gpu, at in ((172, "1b", 130.0), (48, "1b", 100.0), (48, "43", 90.0), (95, "52", 95.0)):
        node.log(xid(code, gpu), at)
    assert node.state.facts().memory_suspects == {ONE: 130.0, TWO: 90.0}


def test_a_report_names_the_board_once_somebody_has_told_who_it_is(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.state.report("gpu-01", SEEN, START).inventory == SEEN
    node.state.kernel.record_gpus(sampled(10.0))
    report = node.state.report("gpu-01", SEEN, START)
    (gpu,) = report.inventory.gpus or ()
    assert (gpu.uuid, gpu.serial, gpu.model) == ("GPU-a", "1653923026510", "NVIDIA H100 80GB HBM3")
    assert decode(encode(report)) == report
    node.boot("first")
    assert node.state.report("gpu-01", SEEN, START).inventory == report.inventory, "saved with the report"
    assert node.state.report("gpu-01", Inventory(gpus=None), START).inventory == Inventory(gpus=None)


def test_another_gpu_in_the_same_slot_does_not_bear_the_old_ones_serial(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.state.kernel.record_gpus(sampled(10.0))
    node.state.report("gpu-01", SEEN, START)
    other = Inventory(gpus=(Gpu(address=ONE, uuid="GPU-b"),))
    node.boot("second", 3600.0)
    assert node.state.report("gpu-01", other, START).inventory == other


def test_what_a_gpu_has_had_is_known_after_a_reboot_and_the_findings_are_not(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.log("GPU at PCI:0000:1b:00: GPU-f1906b9b-557a-e961-045c-9fe4be3ce012", 99.0)
    node.log(xid(31), 100.0)
    node.state.save()
    node.boot("second", 3600.0)
    assert node.verdicts() == []
    node.state.restart("third")
    node.log(xid(31), 4000.0)
    assert node.verdicts() == ["31 warning/ask"]


def test_a_gpu_that_was_swapped_before_the_reboot_begins_anew(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for boot, letter in ((0, "a"), (1, "b")):
        node.boot(f"boot {boot}", boot * 3600.0)
        at = boot * 3600.0 + 100.0
        node.log(f"GPU at PCI:0000:1b:00: GPU-{8 * letter}-557a-e961-045c-9fe4be3ce012", at)
        node.log(xid(31), at)
        assert node.verdicts() == ["31 app/none"]
        node.state.save()


def test_reports_that_say_the_same_are_saved_once_and_no_number_is_given_twice(tmp_path: Path) -> None:
    node, file = Node(tmp_path), tmp_path / "agent-state.json"
    written: set[int] = set()
    numbers: list[int] = []
    for life in range(3):
        for _ in range(NUMBERS_AHEAD + 1):
            numbers.append(node.state.report("gpu-01", SEEN, START).sequence)
            written.add(file.stat().st_mtime_ns)
        # Killed: nothing is saved at the end.
        node.boot("first")
        assert len(written) <= life + 1
    assert numbers == sorted(set(numbers))


def test_what_is_new_is_saved_before_it_is_reported(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.state.report("gpu-01", SEEN, START)
    node.log(xid(79), 100.0)
    node.state.record_answer(ReportAccepted(accepted=1, pool="h100"))
    assert node.state.report("gpu-01", SEEN, START).findings
    node.boot("first")
    assert node.verdicts() == ["79 critical/failover"]
    assert node.state.pool == "h100"
    node.state.report("gpu-01", SEEN, START)
    node.state.kernel.record([], 5000, 570)
    node.state.report("gpu-01", SEEN, START)
    node.boot("first")
    assert (node.state.kernel.cursor, node.state.kernel.branch) == (5000, 570)


def test_a_file_of_another_version_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "agent-state.json").write_bytes(msgspec.json.encode({"boot_id": "first", "visits": []}))
    node = Node(tmp_path)
    node.log(xid(31), 100.0)
    node.state.save()
    node.boot("first")
    assert node.verdicts() == ["31 app/none"]


def test_another_boot_is_another_revision_even_when_nothing_is_wrong_in_either(tmp_path: Path) -> None:
    node = Node(tmp_path)
    before = node.state.revision
    node.state.restart("second")
    assert node.state.revision != before


def test_checks_are_told_who_ended_the_boot_before_once_the_bot_has_said_so(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.state.save()
    node.boot("second")
    assert node.state.facts().repair_ended_previous_boot is None
    for boots, ours in ((("first", "another"), True), (("another",), False), ((), False)):
        node.state.record_answer(ReportAccepted(accepted=1, reset_boots=boots))
        facts = node.state.facts()
        assert (facts.previous_boot_id, facts.repair_ended_previous_boot) == ("first", ours)
    node.state.record_answer(ReportAccepted(accepted=2))
    assert node.state.facts().repair_ended_previous_boot is False, (
        "a bot that does not know now takes nothing back"
    )


def hangs(times: int) -> CheckResult:
    """What the check driver-unresponsive observes when NVML missed so many deadlines in a row."""
    context = CheckContext(
        root=Path("/"),
        now=START,
        uptime=3600.0,
        policy=Policy(),
        facts=NodeFacts(gpus=GpuSnapshot(misses=times)),
    )
    return run_check(driver_unresponsive.CHECK, context)


def test_a_check_is_evidence_about_the_kernel_log_for_as_long_as_it_finds_something(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.log(xid(119), 100.0)
    assert node.verdicts() == ["119 critical/reset-gpu"]
    node.state.record_result(driver_unresponsive.CHECK, hangs(3), Instant(START, 3600.0))
    hung = ["119 critical/reboot", "driver-unresponsive critical/reboot"]
    assert node.verdicts() == hung
    node.state.save()
    node.boot("first")
    assert node.verdicts() == hung, "also right after a restart of the agent"
    node.state.drop_check("driver-unresponsive")
    assert node.verdicts() == ["119 critical/reset-gpu"]
