from datetime import timedelta
from typing import Any

import msgspec
import pytest

from checks.finding import Action, Finding, Severity
from checks.report import Gpu, HeldReport, Inventory, NodeReport
from reconciler.incidents.digests import evidence_digest
from reconciler.incidents.records import Evidence
from reconciler.kube.objects import Node
from reconciler.repair.resource import PreState
from reconciler.repair.verification import Missing, Void, not_booted, not_verified, still_stands
from tests.reconciler.harness import FAULT, NEW, OLD, STALE

EVIDENCE = Evidence(
    cluster="example", incident="i", node="gpu-01", node_uid="uid", boot_id=OLD, findings=(FAULT.key,),
    evidence_digest=evidence_digest(OLD, [FAULT]), plan_digest="",
)  # fmt: skip


def node(**changes: Any) -> Node:
    fields: dict[str, Any] = {
        "name": "gpu-01", "uid": "uid", "boot_id": OLD, "ready": True, "unschedulable": False, "taints": (),
        "labels": {}, "annotations": {}, "gpus": 8, "resource_version": "1",
    }  # fmt: skip
    return Node(**{**fields, **changes})


def held(
    boot_id: str, *findings: Finding, age: float = 1.0, gpus: int | None = 8, blind: tuple[Finding, ...] = ()
) -> HeldReport:
    seen = None if gpus is None else tuple(Gpu(address=str(index)) for index in range(gpus))
    report = NodeReport(
        node="gpu-01", boot_id=boot_id, sequence=1, sent_at=0.0, agent_version="0",
        inventory=Inventory(gpus=seen), findings=findings, blind_spots=blind,
    )  # fmt: skip
    return HeldReport(age_seconds=age, report=report)


def fault(**changes: Any) -> Finding:
    return msgspec.structs.replace(FAULT, **changes)


STANDS: dict[str, tuple[Node | None, HeldReport | None, Missing | Void | None]] = {
    "unchanged": (node(), held(OLD, FAULT), None),
    "more often": (node(), held(OLD, fault(count=99)), None),
    "another finding besides": (node(), held(OLD, FAULT, fault(code="31")), None),
    "gone": (node(), held(OLD), Void(f"the findings are not those approved: gone is {FAULT.key}")),
    "less severe": (
        node(),
        held(OLD, fault(severity=Severity.WARNING)),
        Void("the findings are not those approved"),
    ),
    "booted": (node(boot_id=NEW), held(OLD, FAULT), Void("the node has booted since the approval")),
    "agent of a new boot": (node(), held(NEW, FAULT), Void("the node has booted since the approval")),
    "another node": (
        node(uid="x"),
        held(OLD, FAULT),
        Void("the node has registered again since the approval"),
    ),
    "no node": (None, held(OLD, FAULT), Void("the node is no longer in the cluster")),
    "no report": (node(), None, Missing("waits for a report of the node")),
    "old report": (node(), held(OLD, FAULT, age=31), Missing("waits for a fresh report of the node")),
}


@pytest.mark.parametrize("name", STANDS)
def test_an_approval_fits_only_the_world_it_was_given_for(name: str) -> None:
    found, report, expected = STANDS[name]
    assert still_stands(EVIDENCE, found, report, STALE) == expected


BACK = {
    "back": (node(boot_id=NEW), None),
    "not registered": (None, "the node is not registered"),
    "old boot": (node(), "the node has not booted"),
    "no boot id": (node(boot_id=""), "the node has not booted"),
    "not ready": (node(boot_id=NEW, ready=False), "the node is not ready"),
    "a GPU short": (node(boot_id=NEW, gpus=7), "the node offers 7 of 8 GPUs"),
    "a GPU too many": (node(boot_id=NEW, gpus=9), "the node offers 9 of 8 GPUs"),
}


@pytest.mark.parametrize("name", BACK)
def test_a_node_is_back_when_it_is_whole_and_ready_in_another_boot(name: str) -> None:
    found, expected = BACK[name]
    before = PreState(boot_id=OLD, power="on", unschedulable=False, gpus=8)
    assert not_booted(found, before) == expected


VERIFIED: dict[str, tuple[HeldReport | None, str | None]] = {
    "clean": (held(NEW), None),
    "an application's fault": (held(NEW, fault(severity=Severity.APP)), None),
    "a warning": (held(NEW, fault(severity=Severity.WARNING)), None),
    "critical": (held(NEW, FAULT), f"found after the boot: {FAULT.summary}"),
    "unknown": (
        held(NEW, fault(severity=Severity.UNKNOWN, summary="", action=Action.ASK)),
        f"found after the boot: {FAULT.key}",
    ),
    "blind": (
        held(NEW, blind=(fault(check="log-blind", severity=Severity.UNKNOWN, summary="blind"),)),
        "found after the boot: blind",
    ),
    "a GPU short": (held(NEW, gpus=7), "the agent sees 7 of 8 GPUs"),
    "sees no GPUs": (held(NEW, gpus=None), "the agent cannot see the GPUs"),
    "none": (None, "no report from the new boot"),
    "of the old boot": (held(OLD), "no report from the new boot"),
    "from before": (held(NEW, age=11), "no fresh report since the node is back"),
}


@pytest.mark.parametrize("name", VERIFIED)
def test_a_node_is_verified_by_a_report_of_the_new_boot_alone(name: str) -> None:
    report, expected = VERIFIED[name]
    assert not_verified(report, NEW, 8, timedelta(seconds=10), STALE) == expected


def test_a_report_that_is_stale_verifies_nothing_however_long_the_node_is_back() -> None:
    assert not_verified(held(NEW, age=31), NEW, 8, timedelta(hours=1), STALE) is not None
