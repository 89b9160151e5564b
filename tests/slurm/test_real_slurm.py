"""The rows of a real controller, with real daemons that are drained, killed and brought back."""

import subprocess
from collections.abc import Iterator

import pytest

from checks.slurm.node import COMMAND, SlurmNode, parse
from tests.lab.slurm.cluster import Slurm

pytestmark = pytest.mark.xdist_group("slurm")


@pytest.fixture
def name(slurm: Slurm) -> Iterator[str]:
    """A node that the test may break; afterwards it is idle again."""
    node = slurm.names[0]
    yield node
    if "NOT_RESPONDING" in row(slurm, node).flags:
        slurm.start_node(node)
        slurm.wait("its slurmd", lambda: "NOT_RESPONDING" not in row(slurm, node).flags)
    if row(slurm, node).base == "DOWN" or row(slurm, node).draining:
        slurm.scontrol("update", f"nodename={node}", "state=resume")
    slurm.wait("an idle node", lambda: row(slurm, node).base == "IDLE" and not row(slurm, node).draining)


def row(slurm: Slurm, name: str) -> SlurmNode:
    return next(each for each in parse(slurm.scontrol(*COMMAND[1:])) if each.name == name)


def test_a_healthy_cluster_has_idle_nodes_with_their_gpus(slurm: Slurm) -> None:
    # On a busy machine a daemon may answer the controller late, and counts as silent for a moment.
    slurm.wait("nodes that answer", lambda: not any(row(slurm, each).flags for each in slurm.names))
    nodes = parse(slurm.scontrol(*COMMAND[1:]))
    assert tuple(each.name for each in nodes) == slurm.names
    assert {(each.base, each.gpus, each.reason) for each in nodes} == {("IDLE", 2, "")}


def test_a_drain_names_its_reason_and_who_set_it(slurm: Slurm, name: str) -> None:
    slurm.scontrol("update", f"nodename={name}", "state=drain", "reason=bad disk [sda] State=IDLE Comment=x")
    slurm.scontrol("update", f"nodename={name}", 'comment={"namespace":"slurm","node":"gpu-01"}')
    found = row(slurm, name)
    assert found.draining
    assert not found.busy
    assert (found.reason, found.reason_by) == ("bad disk [sda] State=IDLE Comment=x", "root")
    assert found.reason_at.startswith("20")
    assert found.kubernetes_node == "gpu-01"


def test_a_node_that_is_set_down_is_down(slurm: Slurm, name: str) -> None:
    slurm.scontrol("update", f"nodename={name}", "state=down", "reason=example")
    assert row(slurm, name).base == "DOWN"


def test_a_daemon_that_dies_stops_answering(slurm: Slurm, name: str) -> None:
    slurm.stop_node(name)
    slurm.wait(
        "silence", lambda: {"NOT_RESPONDING"} & row(slurm, name).flags or row(slurm, name).base == "DOWN"
    )


def test_a_controller_that_is_away_gives_no_rows_at_all(slurm: Slurm) -> None:
    slurm.stop_controller()
    with pytest.raises(subprocess.CalledProcessError):
        slurm.scontrol(*COMMAND[1:])
    slurm.start_controller()
    slurm.wait("idle nodes", lambda: {each.base for each in parse(slurm.scontrol(*COMMAND[1:]))} == {"IDLE"})


def test_a_machine_without_cgroups_of_version_1_has_a_slurm_too() -> None:
    with Slurm(nodes=1, cgroups=False) as slurm:
        assert [(each.base, each.gpus) for each in parse(slurm.scontrol(*COMMAND[1:]))] == [("IDLE", 2)]
