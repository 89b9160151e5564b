"""Modifier M1 in a report: its findings are judged, so the heaviest action among them is the answer."""

from pathlib import Path

import pytest

from checks.agent.node_state import NodeState
from checks.agent.state_file import StateFile
from checks.debounce import Instant
from checks.finding import Action, Finding
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.line import KernelLine
from checks.report import Inventory, decode, encode

START = 1_790_000_000.0
LOST = "NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus."
NONE, RESET, REBOOT, P2P = (
    "0x0 (None)",
    "0x1 (GPU Reset Required)",
    "0x2 (Node Reboot Required)",
    "0x3 (Drain P2P)",
)


class Node:
    """One boot of a node: lines of its kernel log in, the findings of its report out."""

    def __init__(self, directory: Path, boot: int = 0) -> None:
        self.booted = boot * 86_400.0
        self.state = NodeState(StateFile(directory), f"boot {boot}")

    def log(self, at: float, text: str) -> None:
        moment = Instant(START + self.booted + at, at)
        events = KernelLogReader().events(KernelLine((text,)), 1)
        self.state.kernel.record([(each, moment) for each in events], None, None)

    def findings(self) -> dict[str, Finding]:
        report = self.state.report("gpu-01", Inventory(gpus=()), START)
        return {each.code: each for each in decode(encode(report)).findings}

    def answer(self) -> Action:
        return max((each.action for each in self.findings().values()), key=list(Action).index)


def xid(code: int, rest: str = "pid=1, name=train, x", gpu: str = "1b") -> str:
    return f"NVRM: Xid (PCI:0000:{gpu}:00): {code}, {rest}"


def named(action: str, gpu: str = "1b") -> str:
    return xid(154, f"GPU recovery action changed from 0x0 (None) to {action}", gpu)


def answer(directory: Path, *lines: tuple[float, str]) -> Action:
    node = Node(directory)
    for at, text in lines:
        node.log(at, text)
    return node.answer()


@pytest.mark.parametrize("order", [(100.0, 105.0), (105.0, 100.0)])
def test_the_recovery_that_the_driver_names_replaces_the_one_of_its_gpus_other_codes(
    tmp_path: Path, order: tuple[float, float]
) -> None:
    lines = sorted(((order[0], xid(79)), (order[1], named(REBOOT))))
    assert answer(tmp_path, *lines) is Action.REBOOT


@pytest.mark.parametrize(
    "line",
    [
        (111.0, named(REBOOT)),
        (105.0, named(REBOOT, gpu="5d")),
        (105.0, xid(154, "GPU recovery action changed from 0x0 (None) to 0x9 (Something new)")),
        (105.0, xid(154, "GPU recovery action cha")),
    ],
    ids=["too late", "of another GPU", "an action that nobody knows", "cut"],
)
def test_what_the_driver_did_not_decide_about_a_gpu_stays(tmp_path: Path, line: tuple[float, str]) -> None:
    assert answer(tmp_path, (100.0, xid(79)), line) is Action.FAILOVER


def test_lines_that_repeat_a_decided_fault_do_not_bring_its_own_action_back(tmp_path: Path) -> None:
    assert answer(tmp_path, (100.0, xid(79)), (105.0, named(RESET)), (300.0, xid(79))) is Action.RESET_GPU


def test_a_recovery_named_just_before_a_repeated_line_decides_about_its_fault(tmp_path: Path) -> None:
    assert answer(tmp_path, (100.0, xid(79)), (195.0, named(RESET)), (200.0, xid(79))) is Action.RESET_GPU


def test_a_companion_that_asks_for_more_is_decided_too_and_a_milder_one_keeps_its_verdict(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    for at, text in ((100.0, xid(48)), (101.0, xid(64)), (102.0, xid(94)), (103.0, named(RESET))):
        node.log(at, text)
    assert node.answer() is Action.RESET_GPU
    assert (node.findings()["64"].action, node.findings()["94"].action) == (Action.RESET_GPU, Action.NONE)


def test_a_lost_gpu_told_twice_is_decided_by_either_of_its_lines(tmp_path: Path) -> None:
    assert answer(tmp_path, (100.0, LOST), (101.0, named(RESET)), (112.0, xid(79))) is Action.RESET_GPU
    (tmp_path / "other").mkdir()
    late = (100.0, LOST), (115.0, named(RESET)), (121.0, xid(79))
    assert answer(tmp_path / "other", *late) is Action.RESET_GPU


def test_the_newest_recovery_that_the_driver_names_counts(tmp_path: Path) -> None:
    lines = ((100.0, xid(95)), (101.0, named(REBOOT)), (400.0, named(RESET)))
    assert answer(tmp_path, *lines) is Action.RESET_GPU


def test_a_recovery_that_is_left_to_a_person_settles_nothing(tmp_path: Path) -> None:
    lines = ((100.0, xid(79)), (101.0, named(P2P)))
    assert answer(tmp_path, *lines) is Action.ASK
    (tmp_path / "other").mkdir()
    assert answer(tmp_path / "other", *lines, (300.0, xid(79))) is Action.FAILOVER


def test_a_link_that_failed_three_times_is_not_mended_by_the_reset_that_the_driver_names(
    tmp_path: Path,
) -> None:
    bits = "0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00040000, 0x00000000, 0x00000000"
    answers = []
    for boot in range(3):
        node = Node(tmp_path, boot)
        node.log(100.0, xid(74, f"pid=1, NVLink: fatal error detected on link 5({bits})"))
        node.log(101.0, named(RESET))
        answers.append(node.answer())
        node.state.save()
    assert answers == [Action.RESET_GPU, Action.RESET_GPU, Action.FAILOVER]


def test_a_decision_outlives_a_restart_of_the_agent(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.log(100.0, xid(79))
    node.log(101.0, named(RESET))
    node.state.save()
    again = Node(tmp_path)
    again.log(300.0, xid(79))
    assert again.answer() is Action.RESET_GPU
    assert again.findings()["79"].count == 2


def test_a_companion_keeps_its_own_action_beside_a_recovery_that_is_left_to_a_person(tmp_path: Path) -> None:
    lines = ((100.0, xid(48)), (101.0, xid(64)), (103.0, named(P2P)))
    assert answer(tmp_path, *lines) is Action.FAILOVER


def test_the_third_fault_of_a_link_counts_though_the_driver_decided_about_the_second(tmp_path: Path) -> None:
    bits = "0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00040000, 0x00000000, 0x00000000"
    link = xid(74, f"pid=1, NVLink: fatal error detected on link 5({bits})")
    lines = ((100.0, link), (1000.0, link), (1001.0, named(RESET)))
    assert answer(tmp_path, *lines) is Action.RESET_GPU
    (tmp_path / "other").mkdir()
    assert answer(tmp_path / "other", *lines, (2000.0, link)) is Action.FAILOVER
