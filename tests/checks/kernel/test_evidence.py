"""What the checks find changes what the kernel log says in a report, for as long as it stands (M1, M6)."""

from pathlib import Path

import pytest

from checks.agent.node_state import NodeState
from checks.agent.state_file import StateFile
from checks.check import Observation, Symptom
from checks.debounce import Instant
from checks.finding import Action, Severity
from checks.gpu.driver_unresponsive import CHECK
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.line import KernelLine
from checks.report import Inventory

START = 1_790_000_000.0
HANGS = Observation(
    symptoms=(
        Symptom(
            code="driver-unresponsive", subsystem="nvml", severity=Severity.CRITICAL, action=Action.REBOOT,
            summary="Calls into the NVIDIA driver do not return.",
        ),
    )
)  # fmt: skip
GSP_TIMEOUT = "NVRM: Xid (PCI:0000:1b:00): 119, pid=1, name=train, Timeout waiting for RPC from GSP"


@pytest.fixture
def state(tmp_path: Path) -> NodeState:
    return NodeState(StateFile(tmp_path), "boot")


def log(state: NodeState, at: float) -> None:
    events = KernelLogReader().events(KernelLine((GSP_TIMEOUT,)), 1)
    state.kernel.record([(each, Instant(START + at, at)) for each in events], None, None)


def look(state: NodeState, seen: Observation, at: float) -> None:
    state.record_result(CHECK, seen, Instant(START + at, at))


def action(state: NodeState) -> Action:
    report = state.report("gpu-01", Inventory(gpus=()), START)
    (found,) = [each.action for each in report.findings if each.code == "119"]
    return found


def test_a_hang_that_begins_after_the_line_changes_its_action_until_the_hang_ends(state: NodeState) -> None:
    log(state, 1000.0)
    assert action(state) is Action.RESET_GPU
    look(state, HANGS, 1030.0)
    assert action(state) is Action.REBOOT
    for poll in range(3):
        look(state, Observation(), 1090.0 + 60.0 * poll)
    assert action(state) is Action.RESET_GPU


def test_a_hang_that_began_before_the_line_counts_too(state: NodeState) -> None:
    look(state, HANGS, 1000.0)
    log(state, 1030.0)
    assert action(state) is Action.REBOOT


def test_a_hang_counts_after_a_restart_of_the_agent(state: NodeState, tmp_path: Path) -> None:
    look(state, HANGS, 1000.0)
    state.save()
    again = NodeState(StateFile(tmp_path), "boot")
    log(again, 1030.0)
    assert action(again) is Action.REBOOT


def test_a_check_that_is_switched_off_is_evidence_no_more(state: NodeState) -> None:
    look(state, HANGS, 1000.0)
    log(state, 1030.0)
    state.drop_check(CHECK.name)
    assert action(state) is Action.RESET_GPU


def test_a_verdict_that_evidence_changes_is_news_for_the_next_report(state: NodeState) -> None:
    log(state, 1000.0)
    before = state.kernel.revision
    look(state, HANGS, 1030.0)
    assert state.kernel.revision == before + 1
    look(state, HANGS, 1090.0)
    assert state.kernel.revision == before + 1
