"""What the tests of the whole loop have in common: driving one incident and looking at its traces."""

from collections.abc import Mapping
from typing import Any

from tests.lab.cluster import Cluster
from tests.lab.slack.delivery import Delivery
from tests.lab.wiring import APPROVER, CHANNEL

LOOP_SECONDS = 100.0
"""A whole repair in the lab takes about 15 s on an idle machine: most of it are boot and verification."""


def open_thread(cluster: Cluster, node: str) -> Mapping[str, Any]:
    """Break a GPU of `node` and return the thread's first message once it can be approved."""
    cluster.break_gpu(node)
    return approvable(cluster, node)


def approvable(cluster: Cluster, node: str) -> Mapping[str, Any]:
    """Return the thread's first message once it carries an Approve button."""

    def found() -> Mapping[str, Any] | None:
        message = cluster.thread(node)
        return message if message and "approve" in cluster.buttons(message) else None

    return cluster.wait(f"an Approve button for {node}", found)


def press(cluster: Cluster, message: Mapping[str, Any], user: str = APPROVER) -> Delivery:
    """Press Approve once, as its confirm dialog's OK does."""
    return cluster.slack.click(CHANNEL, message["ts"], "approve", user)


def approve(cluster: Cluster, message: Mapping[str, Any], user: str = APPROVER) -> None:
    """Press Approve, and again for as long as the person is told to try again."""
    cluster.wait("the click to count", lambda: _counts(cluster, message, user))


def _counts(cluster: Cluster, message: Mapping[str, Any], user: str) -> bool:
    before = len(cluster.slack.ephemerals(user))
    if not press(cluster, message, user).acked:
        return False
    try:
        cluster.wait("the decision in the thread", lambda: _is_decided(cluster, message, user, before), 5)
    except AssertionError:
        return False
    return "approve" not in cluster.buttons(_root(cluster, message))


def _is_decided(cluster: Cluster, message: Mapping[str, Any], user: str, before: int) -> bool:
    told = len(cluster.slack.ephemerals(user)) > before
    return told or "approve" not in cluster.buttons(_root(cluster, message))


def _root(cluster: Cluster, message: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(each for each in cluster.slack.messages(CHANNEL) if each["ts"] == message["ts"])


def closed(cluster: Cluster, node: str, seconds: float = LOOP_SECONDS) -> Mapping[str, Any]:
    """Wait for the incident's end in Git and return its record."""
    return cluster.wait(f"the end of {node}'s incident", lambda: cluster.record(node, "closed.yaml"), seconds)


def assert_repaired_once(cluster: Cluster, node: str) -> None:
    """One incident, one thread, one repair, one reset; the node is in service and our marks are gone."""
    names = sorted(name.rsplit("/", 1)[1] for name in cluster.records() if f"/{node}-" in name)
    assert names == [
        "approval-1.yaml", "closed.yaml", "opened.yaml", "outcome-1.yaml", "repair-1.yaml", "thread.yaml",
    ]  # fmt: skip
    outcome = cluster.record(node, "outcome-1.yaml")
    assert outcome is not None
    assert outcome["phase"] == "Succeeded"
    assert outcome["newBootId"] == cluster.node(node).boot_id
    assert cluster.bmc.resets(node) == 1
    assert cluster.bmc.reset_posts(node) == 1
    roots = [each for each in cluster.slack.messages(CHANNEL) if node in each["text"]]
    assert len(roots) == 1
    live = cluster.kubernetes_node(node)
    assert not live["spec"].get("unschedulable")
    assert not [taint for taint in live["spec"].get("taints", ()) if "clusterwright" in taint["key"]]
    assert not [key for key in live["metadata"].get("annotations", {}) if "clusterwright" in key]
