"""Rows of scontrol as several versions print them, and what the checks make of a node over time."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.agent.scheduler import look_once
from checks.check import Blind, Check, Scene
from checks.debounce import Moment, Watch
from checks.policy import Policy
from checks.slurm.node import SlurmNode, parse
from checks.slurm.state import CHECKS, Expected

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


class Observer:
    """One node's row, looked at again and again on a clock of the test's."""

    def __init__(self) -> None:
        self.watch, self.uptime = Watch(), 0.0

    def see(
        self, seen: SlurmNode | Blind, *, looks: int = 2, gpus: int | None = 8, every: float = 30.0
    ) -> set[str]:
        for _ in range(looks):
            self.uptime += every
            for check in CHECKS:
                self.watch.fold(check, look_once(check, self._scene(check, seen, gpus)), self._moment())
        return {each.code for each in (*self.watch.findings(), *self.watch.blind_spots())}

    def _scene(self, check: Check, seen: SlurmNode | Blind, gpus: int | None) -> Scene:
        return Scene(
            root=Path("/"), now=time.time(), uptime=self.uptime, policy=Policy(),
            past=self.watch.past(check.name), fetched={SlurmNode: seen, Expected: Expected(gpus)},
        )  # fmt: skip

    def _moment(self) -> Moment:
        return Moment(time.time(), self.uptime)


FOREIGN = " Reason=bad disk [root@2026-11-30T10:54:01]"
OURS = " Reason=clusterwright:a1b2 Xid 79 [root@2026-11-30T10:54:01]"


@pytest.mark.parametrize(
    ("seen", "codes"),
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
def test_what_the_controller_says_becomes_findings(seen: SlurmNode, codes: set[str]) -> None:
    observer = Observer()
    assert observer.see(seen, looks=1) == set()
    assert observer.see(seen) == codes
    assert observer.see(node("IDLE"), looks=3) == set()


def test_a_node_may_be_silent_for_five_minutes() -> None:
    observer = Observer()
    assert observer.see(node("IDLE*"), looks=10) == set()
    assert observer.see(node("IDLE*"), looks=2) == {"slurm-not-responding"}
    assert observer.see(node("IDLE"), looks=3) == set()


def test_gpus_that_slurm_and_the_node_count_differently_are_told() -> None:
    observer = Observer()
    assert observer.see(node("IDLE"), gpus=7) == {"slurm-gres"}
    assert Observer().see(node("IDLE"), gpus=None) == set()


def test_a_controller_that_does_not_answer_makes_nobody_healthy_or_sick() -> None:
    observer = Observer()
    assert observer.see(node("DOWN")) == {"slurm-down"}
    assert observer.see(Blind("no answer", told=True), looks=20) == {"slurm-down"}


def test_a_state_that_a_new_controller_does_not_know_yet_clears_nothing() -> None:
    observer = Observer()
    assert observer.see(node("DOWN")) == {"slurm-down"}
    assert observer.see(node("UNKNOWN"), looks=2) == {"slurm-down"}
    assert observer.see(node("IDLE")) == set()
    assert Observer().see(node("UNKNOWN*"), looks=12) == {"slurm-not-responding"}
