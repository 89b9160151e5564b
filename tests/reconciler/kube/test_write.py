from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from reconciler.apply.definitions import PACKAGED, definitions
from reconciler.kube.objects import Node
from reconciler.kube.read import KubernetesReader
from reconciler.kube.results import (
    CORDONED_BY,
    FIELD_MANAGER,
    TAINT,
    Conflict,
    Evicted,
    EvictionBlocked,
    PodGone,
    Stored,
    UnavailableError,
)
from reconciler.kube.write import CRDS, KubernetesWriter
from tests.lab.kube.kube import Kube
from tests.reconciler.harness import START, NodeHarness

OURS, THEIRS = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
OTHER = {"key": "example.com/other", "value": "x", "effect": "NoSchedule"}


@pytest.fixture(scope="session")
def kube(either: Kube) -> Kube:
    return either


@pytest.fixture
def writer(harness: NodeHarness) -> KubernetesWriter:
    return harness.context().writer


@pytest.fixture
def reader(harness: NodeHarness) -> KubernetesReader:
    return harness.context().reader


def read(reader: KubernetesReader, harness: NodeHarness) -> Node:
    node = reader.node(harness.node)
    assert node is not None
    return node


def state(harness: NodeHarness) -> tuple[bool, dict[str, str], str | None]:
    raw = harness.raw_node()
    taints = {each["key"]: each.get("value", "") for each in raw["spec"].get("taints") or ()}
    return (
        bool(raw["spec"].get("unschedulable")),
        taints,
        (raw["metadata"].get("annotations") or {}).get(CORDONED_BY),
    )


def test_a_cordon_marks_the_node_and_leaves_other_taints(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    harness.patch_node({"spec": {"taints": [OTHER]}})
    assert isinstance(writer.cordon(read(reader, harness), OURS), Stored)
    assert state(harness) == (True, {"example.com/other": "x", TAINT: OURS}, OURS)
    assert isinstance(writer.cordon(read(reader, harness), OURS), Stored)
    assert state(harness) == (True, {"example.com/other": "x", TAINT: OURS}, OURS)


def test_taints_of_the_control_plane_survive_a_cordon_and_an_uncordon_with_their_times(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    since = "2026-11-30T12:00:00Z"
    theirs = [
        {"key": "node.kubernetes.io/unreachable", "effect": effect, "timeAdded": since}
        for effect in ("NoSchedule", "NoExecute")
    ]
    harness.patch_node({"spec": {"taints": theirs}})
    there = harness.raw_node()["spec"]["taints"]
    writer.cordon(read(reader, harness), OURS)
    assert [each for each in harness.raw_node()["spec"]["taints"] if each["key"] != TAINT] == there
    writer.uncordon(read(reader, harness), OURS)
    assert harness.raw_node()["spec"]["taints"] == there
    assert any(each["effect"] == "NoExecute" and each["timeAdded"] == since for each in there)


def test_a_cordon_of_a_cordoned_node_is_not_claimed(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    harness.patch_node({"spec": {"unschedulable": True}})
    writer.cordon(read(reader, harness), OURS)
    assert state(harness) == (True, {TAINT: OURS}, None)


def test_marks_of_an_earlier_action_are_taken_over(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    writer.cordon(read(reader, harness), THEIRS)
    writer.cordon(read(reader, harness), OURS)
    assert state(harness) == (True, {TAINT: OURS}, OURS)


@pytest.mark.parametrize(
    ("tainted", "annotated", "cordoned"), list(product([OURS, THEIRS, ""], [OURS, THEIRS, ""], [True, False]))
)
def test_an_uncordon_takes_off_our_marks_and_no_others(
    harness: NodeHarness, writer: KubernetesWriter, tainted: str, annotated: str, cordoned: bool
) -> None:
    reader = harness.context().reader
    taints = [OTHER] + ([{"key": TAINT, "value": tainted, "effect": "NoSchedule"}] if tainted else [])
    node = read(reader, harness)
    if cordoned:
        writer.cordon(node, annotated or OURS)
    harness.patch_node(
        {"metadata": {"annotations": {CORDONED_BY: annotated or None}}, "spec": {"taints": taints}}
    )
    assert isinstance(writer.uncordon(read(reader, harness), OURS), Stored)
    left = {"example.com/other": "x"} | ({TAINT: THEIRS} if tainted == THEIRS else {})
    assert state(harness) == (
        cordoned and annotated != OURS, left, THEIRS if annotated == THEIRS else None,
    )  # fmt: skip


def test_a_node_that_changed_since_it_was_read_is_not_written(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    node = read(reader, harness)
    harness.patch_node({"metadata": {"labels": {"new": "label"}}})
    assert isinstance(writer.cordon(node, OURS), Conflict)
    assert isinstance(writer.uncordon(node, OURS), Conflict)
    assert state(harness) == (False, {}, None)


def test_a_node_that_is_gone_is_a_conflict(
    writer: KubernetesWriter, reader: KubernetesReader, harness: NodeHarness
) -> None:
    assert isinstance(writer.cordon(replace(read(reader, harness), name="absent"), OURS), Conflict)


def test_an_eviction_deletes_the_pod(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    harness.pod("a")
    (pod,) = reader.pods(harness.node)
    assert writer.evict(pod) == Evicted()
    harness.confirm_gone()
    assert reader.pods(harness.node) == ()
    assert writer.evict(pod) == PodGone()


def test_an_eviction_is_of_that_pod_and_not_of_its_successor(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    harness.pod("a")
    (pod,) = reader.pods(harness.node)
    assert writer.evict(replace(pod, uid="another")) == PodGone()
    assert len(reader.pods(harness.node)) == 1


def test_a_blocked_eviction_names_its_budget(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    labels = {"app": harness.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{harness.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    harness.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    harness.pod("web", labels=labels)
    (pod,) = reader.pods(harness.node)
    blocked = writer.evict(pod)
    assert isinstance(blocked, EvictionBlocked)
    assert blocked.budgets == (f"{harness.node}-web",)
    assert f"{harness.node}-web" in blocked.reason


def test_a_lease_is_taken_renewed_and_left_only_as_it_was_read(
    harness: NodeHarness, writer: KubernetesWriter, reader: KubernetesReader
) -> None:
    name = f"lease-{harness.node}"
    assert isinstance(writer.hold_lease(name, None, OURS, START), Stored)
    assert isinstance(writer.hold_lease(name, None, THEIRS, START), Conflict)
    held = reader.lease("clusterwright", name)
    assert held is not None
    assert (held.holder, held.renewed_at) == (OURS, START)
    assert isinstance(writer.hold_lease(name, held, OURS, START + timedelta(seconds=10)), Stored)
    assert isinstance(writer.hold_lease(name, held, THEIRS, START), Conflict)
    assert isinstance(writer.release_lease(name, held), Conflict)
    renewed = reader.lease("clusterwright", name)
    assert renewed is not None
    assert isinstance(writer.release_lease(name, renewed), Stored)
    left = reader.lease("clusterwright", name)
    assert left is not None
    assert left.holder == ""
    assert isinstance(writer.hold_lease(name, left, THEIRS, START), Stored)


def test_a_repair_is_created_once(harness: NodeHarness, writer: KubernetesWriter) -> None:
    spec = {"recordPath": "p", "recordCommit": "c", "record": {}}
    assert isinstance(writer.create_repair(f"{harness.node}-x", spec), Stored)
    assert isinstance(writer.create_repair(f"{harness.node}-x", spec), Conflict)


def test_of_two_who_read_a_status_one_writes_it(harness: NodeHarness) -> None:
    harness.order()
    repair, writer = harness.repair(), harness.context().writer
    first = writer.write_status(repair.name, repair.resource_version, {"message": "first"})
    assert isinstance(first, Stored)
    assert isinstance(
        writer.write_status(repair.name, repair.resource_version, {"message": "second"}), Conflict
    )
    assert isinstance(writer.write_status(repair.name, first.resource_version, {"message": None}), Stored)
    assert harness.repair().status.message == ""
    assert isinstance(writer.write_status("absent", "1", {}), Conflict)


def test_a_definition_that_is_applied_again_stays_as_it_is_and_is_ours(
    harness: NodeHarness, writer: KubernetesWriter
) -> None:
    for crd in definitions(PACKAGED):
        path = f"{CRDS}/{crd['metadata']['name']}"
        writer.apply_crd(crd)
        first = harness.kube.request("GET", path)[1]["metadata"]
        writer.apply_crd(crd)
        second = harness.kube.request("GET", path)[1]["metadata"]
        assert second["generation"] == first["generation"]
        owners = {each["manager"] for each in second["managedFields"] if each["operation"] == "Apply"}
        assert owners == {FIELD_MANAGER}


def test_a_refused_write_is_unknown(writer: KubernetesWriter) -> None:
    with pytest.raises(UnavailableError, match="422"):
        writer.create_repair("Not A Name", {})
