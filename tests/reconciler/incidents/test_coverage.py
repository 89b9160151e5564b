"""One rule says whether an approved plan covers the pods of a node; bot and reconciler both ask it."""

from typing import Any

import pytest

from reconciler.incidents.coverage import disturbed, uncovered
from reconciler.incidents.plan import PlannedPod
from reconciler.kube.objects import Budget, Pod


def pod(name: str, **changes: Any) -> Pod:
    fields: dict[str, Any] = {
        "namespace": "default", "name": name, "uid": name, "node": "gpu-01", "phase": "Running", "labels": {},
        "controller": "ReplicaSet/a", "mirror": False, "gpus": 0, "empty_dir": False, "terminating": False,
    }  # fmt: skip
    return Pod(**{**fields, **changes})


def planned(name: str, **changes: Any) -> PlannedPod:
    return PlannedPod(**{"namespace": "default", "name": name, "uid": name, "gpus": 1, **changes})


def test_a_drain_disturbs_every_pod_that_it_has_to_evict() -> None:
    pods = [
        pod("a"), pod("daemon", controller="DaemonSet/d"), pod("static", mirror=True),
        pod("done", phase="Succeeded"), pod("failed", phase="Failed"), pod("leaving", terminating=True),
    ]  # fmt: skip
    assert [each.name for each in disturbed(pods, ())] == ["a", "leaving"]


def test_a_disturbed_pod_is_shown_with_its_uid_its_gpus_and_what_makes_its_eviction_risky() -> None:
    budget = Budget("default", "web", {"matchLabels": {"app": "web"}}, 0)
    free = Budget("default", "free", {"matchLabels": {"app": "web"}}, 1)
    found = disturbed(
        [pod("a", controller=None, gpus=2, empty_dir=True, labels={"app": "web"})], [budget, free]
    )
    assert found == (
        PlannedPod(namespace="default", name="a", uid="a", gpus=2, risks=("bare", "emptyDir", "pdb:web")),
    )


def test_a_budget_is_no_risk_to_a_pod_that_it_does_not_cover() -> None:
    labels = {"app": "web"}
    others = [Budget("default", "db", {"matchLabels": {"app": "db"}}, 0), Budget("x", "web", {}, 0)]
    assert disturbed([pod("a", labels=labels)], others)[0].risks == ()
    assert disturbed([pod("a", labels=labels)], [Budget("default", "all", {}, 0)])[0].risks == ("pdb:all",)


SHOWN = (planned("a", risks=("bare",)), planned("b"))
COVERED: dict[str, tuple[PlannedPod, bool]] = {
    "the same": (planned("a", risks=("bare",)), True),
    "fewer risks": (planned("a"), True),
    "fewer GPUs": (planned("b", gpus=0), True),
    "another namespace, the same pod": (planned("b", namespace="x"), True),
    "the name again, another pod": (planned("a", uid="a2"), False),
    "more GPUs": (planned("a", gpus=8), False),
    "another risk": (planned("b", risks=("emptyDir",)), False),
    "a budget that blocks now": (planned("a", risks=("bare", "pdb:web")), False),
    "a pod that was not shown": (planned("c"), False),
    "a pod without a UID": (planned("a", uid=""), False),
}


@pytest.mark.parametrize("name", COVERED)
def test_a_plan_covers_the_same_pods_with_no_more_risk_and_no_more_gpus(name: str) -> None:
    current, covered = COVERED[name]
    assert uncovered(SHOWN, [current]) == (() if covered else (current,))


def test_a_plan_that_names_a_pod_without_its_uid_covers_nothing() -> None:
    assert uncovered([planned("a", uid="")], [planned("a", uid="")]) == (planned("a", uid=""),)
