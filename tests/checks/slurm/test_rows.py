"""Rows of scontrol as several versions print them, and what the checks make of a node over time."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.debounce import Instant
from checks.slurm.findings import SlurmFindings
from checks.slurm.node import SlurmNode, parse

ROW = (
    "NodeName=w0 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 Gres=gpu:h100:8 NodeAddr=10.0.0.1 "
    "NodeHostName=gpu-01 OS=Linux 6.8.0 #1 SMP @0  State={state} ThreadsPerCore=1 Partitions=gpu "
    "BootTime=2026-11-30T08:35:57"
)


def node(state: str, tail: str = "") -> SlurmNode:
    (found,) = parse(ROW.format(state=state) + tail + "\n\n")
    return found


@pytest.mark.parametrize(
    ("state", "base", "flags"),
    [
        ("IDLE", "IDLE", set()),
        ("IDLE+DRAIN", "IDLE", {"DRAIN"}),
        ("DOWN*", "DOWN", {"NOT_RESPONDING"}),
        ("DOWN*+DRAIN", "DOWN", {"NOT_RESPONDING", "DRAIN"}),
        ("DOWN+DRAIN+NOT_RESPONDING", "DOWN", {"DRAIN", "NOT_RESPONDING"}),
        ("MIXED+COMPLETING+PLANNED", "MIXED", {"COMPLETING", "PLANNED"}),
        ("ALLOCATED$", "ALLOCATED", set()),
    ],
)
def test_a_state_is_a_base_and_flags(state: str, base: str, flags: set[str]) -> None:
    assert (node(state).base, node(state).flags) == (base, flags)


@pytest.mark.parametrize(
    ("tail", "reason", "by"),
    [
        ("", "", ""),
        (" Reason=bad disk [root@2026-11-30T10:54:01]", "bad disk", "root"),
        (
            " Reason=bad [sda] State=IDLE Comment=x [ops@2026-11-30T10:54:01]",
            "bad [sda] State=IDLE Comment=x",
            "ops",
        ),
        (' Reason=x [root@2026-11-30T10:54:01] Comment={"node":"k8s-1"}', "x", "root"),
        (" Reason=no owner", "no owner", ""),
        (" Comment=Reason unknown", "", ""),
    ],
)
def test_a_reason_may_hold_anything(tail: str, reason: str, by: str) -> None:
    found = node("IDLE+DRAIN", tail)
    assert (found.reason, found.reason_by, found.base) == (reason, by, "IDLE")
    assert found.kubernetes_node == ("k8s-1" if "k8s-1" in tail else "")


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:h100:8", 8),
        ("gpu:8", 8),
        ("gpu:a:2,gpu:b:4", 6),
        ("(null)", None),
        ("gpu:h100:8(S:0-1)", 8),
        ("shard:4", None),
    ],
)
def test_gpus_are_counted(gres: str, gpus: int | None) -> None:
    (found,) = parse(ROW.format(state="IDLE").replace("gpu:h100:8", gres))
    assert found.gpus == gpus


def test_half_an_answer_is_an_error_and_not_fewer_nodes() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse(ROW.format(state="IDLE") + "\nslurm_load_node error: Unable to contact slurm controller")
    assert parse("No nodes in the system\n") == ()


@given(st.text(alphabet='NodeNameState=+ *[]@{}":1', max_size=80))
def test_no_text_crashes_the_reading(text: str) -> None:
    (found,) = parse("NodeName=w0 State=IDLE Reason=" + text.replace("\n", " "))
    assert (found.name, found.base) == ("w0", "IDLE")


class Controller:
    """Answers about one node, again and again, on a clock of the test's."""

    def __init__(self) -> None:
        self.findings, self.uptime = SlurmFindings(), 0.0

    def answer(
        self, row: SlurmNode, *, times: int = 2, gpus: int | None = 8, every: float = 30.0
    ) -> set[str]:
        found = {}
        for _ in range(times):
            self.uptime += every
            at = Instant(1_796_000_000.0 + self.uptime, self.uptime)
            found = self.findings.update((row,), {"gpu-01": gpus}, at)
        return {each.code for each in found["gpu-01"]}


FOREIGN = " Reason=bad disk [root@2026-11-30T10:54:01]"
OURS = " Reason=clusterwright:a1b2 Xid 79 [root@2026-11-30T10:54:01]"


@pytest.mark.parametrize(
    ("row", "codes"),
    [
        (node("IDLE"), set()),
        (node("MIXED+COMPLETING"), set()),
        (node("DOWN"), {"slurm-down"}),
        (node("DOWN*+DRAIN", FOREIGN), {"slurm-down", "slurm-drained"}),
        (node("IDLE+FAIL"), {"slurm-fail"}),
        (node("IDLE+DRAIN", FOREIGN), {"slurm-drained"}),
        (node("ALLOCATED+DRAIN", FOREIGN), {"slurm-drained"}),
        (node("IDLE+DRAIN", OURS), set()),
        (node("DOWN+DRAIN+REBOOT_ISSUED", OURS), set()),
        (node("IDLE+DRAIN+MAINTENANCE", FOREIGN), set()),
        (node("DOWN+POWERED_DOWN"), set()),
    ],
)
def test_what_the_controller_says_becomes_findings(row: SlurmNode, codes: set[str]) -> None:
    controller = Controller()
    assert controller.answer(row, times=1) == set()
    assert controller.answer(row) == codes
    assert controller.answer(node("IDLE"), times=3) == set()


def test_a_node_may_be_silent_for_five_minutes() -> None:
    controller = Controller()
    assert controller.answer(node("IDLE*"), times=10) == set()
    assert controller.answer(node("IDLE*"), times=2) == {"slurm-not-responding"}
    assert controller.answer(node("IDLE"), times=3) == set()


def test_gpus_that_slurm_and_the_node_count_differently_are_told() -> None:
    controller = Controller()
    assert controller.answer(node("IDLE"), gpus=7) == {"slurm-gres"}
    assert Controller().answer(node("IDLE"), gpus=None) == set()


def test_rows_are_about_a_node_by_slinkys_comment_its_name_or_its_host_name() -> None:
    at = Instant(1_796_000_000.0, 7200.0)
    rows = (
        node("DOWN", ' Comment={"node":"k8s-1"}'),
        msgspec.structs.replace(node("DOWN"), name="k8s-2"),
        msgspec.structs.replace(node("DOWN"), hostname="k8s-3"),
        msgspec.structs.replace(node("DOWN"), name="a-login-node", hostname="somewhere-else"),
    )
    slurm, gpus = SlurmFindings(), {"k8s-1": 8, "k8s-2": 8, "k8s-3": None, "not-in-slurm": 8}
    slurm.update(rows, gpus, at)
    found = slurm.update(rows, gpus, msgspec.structs.replace(at, uptime=7230.0))
    assert {name: [each.code for each in findings] for name, findings in found.items()} == {
        "k8s-1": ["slurm-down"],
        "k8s-2": ["slurm-down"],
        "k8s-3": ["slurm-down"],
    }


def test_a_node_that_leaves_slurm_is_forgotten_and_starts_again_when_it_returns() -> None:
    controller = Controller()
    assert controller.answer(node("DOWN")) == {"slurm-down"}
    later = Instant(0.0, controller.uptime + 30.0)
    assert controller.findings.update((), {"gpu-01": 8}, later) == {}
    assert controller.answer(node("DOWN"), times=1) == set()


def test_a_state_that_a_new_controller_does_not_know_yet_clears_nothing() -> None:
    controller = Controller()
    assert controller.answer(node("DOWN")) == {"slurm-down"}
    assert controller.answer(node("UNKNOWN"), times=2) == {"slurm-down"}
    assert controller.answer(node("IDLE")) == set()
    assert Controller().answer(node("UNKNOWN*"), times=12) == {"slurm-not-responding"}
