from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from reconciler.act import CORDONED_BY, TAINT, Actor, Blocked, Conflict, Evicted, Gone, Written
from reconciler.apply.apply import PACKAGED, apply_definitions, definitions
from reconciler.connection import UnavailableError
from reconciler.observe import Observer
from reconciler.observed import Node
from tests.lab.kube.kube import Kube
from tests.reconciler.site import START, Site

OURS, THEIRS = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
OTHER = {"key": "example.com/other", "value": "x", "effect": "NoSchedule"}


@pytest.fixture(scope="session")
def kube(either: Kube) -> Kube:
    return either


@pytest.fixture
def actor(site: Site) -> Actor:
    return site.doors().actor


@pytest.fixture
def observer(site: Site) -> Observer:
    return site.doors().observer


def read(observer: Observer, site: Site) -> Node:
    node = observer.node(site.node)
    assert node is not None
    return node


def state(site: Site) -> tuple[bool, dict[str, str], str | None]:
    raw = site.raw_node()
    taints = {each["key"]: each.get("value", "") for each in raw["spec"].get("taints") or ()}
    return (
        bool(raw["spec"].get("unschedulable")),
        taints,
        (raw["metadata"].get("annotations") or {}).get(CORDONED_BY),
    )


def test_a_cordon_marks_the_node_and_leaves_other_taints(
    site: Site, actor: Actor, observer: Observer
) -> None:
    site.patch_node({"spec": {"taints": [OTHER]}})
    assert isinstance(actor.cordon(read(observer, site), OURS), Written)
    assert state(site) == (True, {"example.com/other": "x", TAINT: OURS}, OURS)
    assert isinstance(actor.cordon(read(observer, site), OURS), Written)
    assert state(site) == (True, {"example.com/other": "x", TAINT: OURS}, OURS)


def test_a_cordon_of_a_cordoned_node_is_not_claimed(site: Site, actor: Actor, observer: Observer) -> None:
    site.patch_node({"spec": {"unschedulable": True}})
    actor.cordon(read(observer, site), OURS)
    assert state(site) == (True, {TAINT: OURS}, None)


def test_marks_of_an_earlier_action_are_taken_over(site: Site, actor: Actor, observer: Observer) -> None:
    actor.cordon(read(observer, site), THEIRS)
    actor.cordon(read(observer, site), OURS)
    assert state(site) == (True, {TAINT: OURS}, OURS)


@pytest.mark.parametrize(
    ("tainted", "annotated", "cordoned"), list(product([OURS, THEIRS, ""], [OURS, THEIRS, ""], [True, False]))
)
def test_an_uncordon_takes_off_our_marks_and_no_others(
    site: Site, actor: Actor, tainted: str, annotated: str, cordoned: bool
) -> None:
    observer = site.doors().observer
    taints = [OTHER] + ([{"key": TAINT, "value": tainted, "effect": "NoSchedule"}] if tainted else [])
    node = read(observer, site)
    if cordoned:
        actor.cordon(node, annotated or OURS)
    site.patch_node(
        {"metadata": {"annotations": {CORDONED_BY: annotated or None}}, "spec": {"taints": taints}}
    )
    assert isinstance(actor.uncordon(read(observer, site), OURS), Written)
    left = {"example.com/other": "x"} | ({TAINT: THEIRS} if tainted == THEIRS else {})
    assert state(site) == (
        cordoned and annotated != OURS, left, THEIRS if annotated == THEIRS else None,
    )  # fmt: skip


def test_a_node_that_changed_since_it_was_read_is_not_written(
    site: Site, actor: Actor, observer: Observer
) -> None:
    node = read(observer, site)
    site.patch_node({"metadata": {"labels": {"new": "label"}}})
    assert isinstance(actor.cordon(node, OURS), Conflict)
    assert isinstance(actor.uncordon(node, OURS), Conflict)
    assert state(site) == (False, {}, None)


def test_a_node_that_is_gone_is_a_conflict(actor: Actor, observer: Observer, site: Site) -> None:
    assert isinstance(actor.cordon(replace(read(observer, site), name="absent"), OURS), Conflict)


def test_an_eviction_deletes_the_pod(site: Site, actor: Actor, observer: Observer) -> None:
    site.pod("a")
    (pod,) = observer.pods(site.node)
    assert actor.evict(pod) == Evicted()
    site.confirm_gone()
    assert observer.pods(site.node) == ()
    assert actor.evict(pod) == Gone()


def test_an_eviction_is_of_that_pod_and_not_of_its_successor(
    site: Site, actor: Actor, observer: Observer
) -> None:
    site.pod("a")
    (pod,) = observer.pods(site.node)
    assert actor.evict(replace(pod, uid="another")) == Gone()
    assert len(observer.pods(site.node)) == 1


def test_a_blocked_eviction_names_its_budget(site: Site, actor: Actor, observer: Observer) -> None:
    labels = {"app": site.node}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{site.node}-web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    site.kube.request("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    site.pod("web", labels=labels)
    (pod,) = observer.pods(site.node)
    blocked = actor.evict(pod)
    assert isinstance(blocked, Blocked)
    assert blocked.budgets == (f"{site.node}-web",)
    assert f"{site.node}-web" in blocked.reason


def test_a_lease_is_taken_renewed_and_left_only_as_it_was_read(
    site: Site, actor: Actor, observer: Observer
) -> None:
    name = f"lease-{site.node}"
    assert isinstance(actor.hold_lease(name, None, OURS, START), Written)
    assert isinstance(actor.hold_lease(name, None, THEIRS, START), Conflict)
    held = observer.lease("clusterwright", name)
    assert held is not None
    assert (held.holder, held.renewed_at) == (OURS, START)
    assert isinstance(actor.hold_lease(name, held, OURS, START + timedelta(seconds=10)), Written)
    assert isinstance(actor.release_lease(name, held), Conflict)
    renewed = observer.lease("clusterwright", name)
    assert renewed is not None
    assert isinstance(actor.release_lease(name, renewed), Written)
    left = observer.lease("clusterwright", name)
    assert left is not None
    assert left.holder == ""
    assert isinstance(actor.hold_lease(name, left, THEIRS, START), Written)


def test_a_repair_is_created_once(site: Site, actor: Actor) -> None:
    spec = {"recordPath": "p", "recordCommit": "c", "record": {}}
    assert isinstance(actor.create_repair(f"{site.node}-x", spec), Written)
    assert isinstance(actor.create_repair(f"{site.node}-x", spec), Conflict)


def test_of_two_who_read_a_status_one_writes_it(site: Site) -> None:
    site.order()
    repair, actor = site.repair(), site.doors().actor
    first = actor.write_status(repair.name, repair.resource_version, {"message": "first"})
    assert isinstance(first, Written)
    assert isinstance(
        actor.write_status(repair.name, repair.resource_version, {"message": "second"}), Conflict
    )
    assert isinstance(actor.write_status(repair.name, first.resource_version, {"message": None}), Written)
    assert site.repair().status.message == ""
    assert isinstance(actor.write_status("absent", "1", {}), Conflict)


def test_definitions_may_be_applied_any_number_of_times(actor: Actor) -> None:
    for _ in range(2):
        apply_definitions(actor, definitions(PACKAGED))


def test_a_refused_write_is_unknown(actor: Actor) -> None:
    with pytest.raises(UnavailableError, match="422"):
        actor.create_repair("Not A Name", {})
