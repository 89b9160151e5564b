from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.finding import Action
from reconciler.incidents.admission import Admitted, NotAdmitted, UnreadableRecord, admit, approvers_of
from reconciler.incidents.digests import action_id, digest
from reconciler.incidents.paths import open_records, outcome_path
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import Decider, RepairRecord
from tests.reconciler.harness import CONFIG, START, NodeHarness, config, dump

NOW = START + timedelta(minutes=1)


def judged(harness: NodeHarness, now: Any = NOW) -> Admitted | NotAdmitted | UnreadableRecord:
    return admit(harness.path, harness.files, config(), now)


def test_an_approved_record_is_admitted_with_its_approvers(harness: NodeHarness) -> None:
    record = harness.record("a")
    harness.put(record)
    assert judged(harness) == Admitted(harness.path, record, ("approver@example.com",))
    assert approvers_of(harness.path, harness.files) == ("approver@example.com",)


def evidence(record: RepairRecord, **changes: Any) -> RepairRecord:
    return record.model_copy(update={"evidence": record.evidence.model_copy(update=changes)})


RECORDS: dict[str, tuple[Callable[[RepairRecord], RepairRecord], Phase, str]] = {
    "another cluster": (lambda r: evidence(r, cluster="other"), Phase.FAILED, "cluster is 'other'"),
    "another incident": (lambda r: evidence(r, incident="other"), Phase.FAILED, "incident is 'other'"),
    "another attempt": (lambda r: r.model_copy(update={"attempt": 2}), Phase.FAILED, "attempt is '2'"),
    "another node": (lambda r: evidence(r, node_uid="other"), Phase.FAILED, "actionId is"),
    "a forged id": (
        lambda r: r.model_copy(update={"action_id": "f" * 12}),
        Phase.FAILED,
        "actionId is 'ffffffffffff'",
    ),
    "an action not built": (
        lambda r: r.model_copy(update={"action": Action.REPROVISION}),
        Phase.FAILED,
        "the plan is for reboot, not reprovision",
    ),
    "another plan": (
        lambda r: r.model_copy(update={"plan": r.plan.model_copy(update={"provider": "other"})}),
        Phase.FAILED,
        "the plan differs from the one that was approved",
    ),
    "an older plan": (lambda r: evidence(r, plan_digest=digest("old")), Phase.FAILED, "the plan differs"),
    "no approval": (
        lambda r: r.model_copy(update={"approvals": ()}),
        Phase.FAILED,
        "the record names no approval",
    ),
    "an absent approval": (
        lambda r: r.model_copy(update={"approvals": ("approval-2.yaml",)}),
        Phase.FAILED,
        "approval-2.yaml is named",
    ),
    "an approval from elsewhere": (
        lambda r: r.model_copy(update={"approvals": ("../x/approval-1.yaml",)}),
        Phase.FAILED,
        "is not there",
    ),
    "another file as approval": (
        lambda r: r.model_copy(update={"approvals": ("repair-1.yaml",)}),
        Phase.FAILED,
        "is not there",
    ),
    "lapsed": (
        lambda r: r.model_copy(update={"expires_at": NOW}),
        Phase.LAPSED,
        "the approval lapsed at 2026-11-30 12:01:00 UTC",
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_claims_anything_else_is_refused(harness: NodeHarness, name: str) -> None:
    change, phase, reason = RECORDS[name]
    record = harness.record()
    changed = change(record)
    harness.put(changed, harness.approval(record, evidence=changed.evidence, action=changed.action))
    found = judged(harness)
    assert isinstance(found, NotAdmitted)
    assert (found.phase, reason in found.reason) == (phase, True), found.reason


def test_a_file_with_two_records_is_unreadable(harness: NodeHarness) -> None:
    harness.put(harness.record())
    harness.files[harness.path] += b"---\n" + harness.files[harness.path]
    found = judged(harness)
    assert isinstance(found, UnreadableRecord)
    assert "must hold one RepairRecord, holds 2" in str(found.faults[0])


def test_approvers_are_named_in_the_order_of_the_record(harness: NodeHarness) -> None:
    record = harness.record().model_copy(update={"approvals": ("approval-2.yaml", "approval-1.yaml")})
    harness.put(record)
    second = harness.approval(record, approver=Decider(name="Example Visitor", email="visitor@example.com"))
    harness.files[f"{harness.directory}/approval-2.yaml"] = dump(second)
    assert approvers_of(harness.path, harness.files) == ("visitor@example.com", "approver@example.com")


def test_an_approval_may_be_dated_as_far_ahead_as_clocks_differ(harness: NodeHarness) -> None:
    record = harness.record()
    for ahead, admitted in ((timedelta(minutes=5), True), (timedelta(minutes=5, seconds=1), False)):
        harness.put(record, harness.approval(record, approved_at=NOW + ahead))
        assert isinstance(judged(harness), Admitted) == admitted, ahead


APPROVALS: dict[str, tuple[dict[str, Any], Phase, str]] = {
    "a stranger": (
        {"approver": Decider(name="Example Visitor", email="visitor@example.com")},
        Phase.LAPSED,
        "visitor@example.com is not an approver",
    ),
    "another action": ({"action": Action.REMOVE}, Phase.FAILED, "approves something else"),
    "lapsed": ({"expires_at": NOW}, Phase.LAPSED, "the approval lapsed at"),
    "older than the policy allows": (
        {"approved_at": NOW - timedelta(hours=1), "expires_at": NOW + timedelta(days=365)},
        Phase.LAPSED,
        "the approval lapsed at",
    ),
    "from the future": ({"approved_at": NOW + timedelta(minutes=6)}, Phase.FAILED, "is dated in the future"),
}


@pytest.mark.parametrize("name", APPROVALS)
def test_an_approval_that_does_not_cover_the_record_is_refused(harness: NodeHarness, name: str) -> None:
    changes, phase, reason = APPROVALS[name]
    record = harness.record()
    harness.put(record, harness.approval(record, **changes))
    found = judged(harness)
    assert isinstance(found, NotAdmitted)
    assert (found.phase, reason in found.reason) == (phase, True), found.reason


@pytest.mark.parametrize(
    "field", ["cluster", "incident", "node", "node_uid", "boot_id", "evidence_digest", "plan_digest"]
)
def test_an_approval_of_other_evidence_is_refused(harness: NodeHarness, field: str) -> None:
    record = harness.record()
    other = record.evidence.model_copy(update={field: "other"})
    harness.put(record, harness.approval(record, evidence=other))
    found = judged(harness)
    assert isinstance(found, NotAdmitted)
    assert found.reason == "approval-1.yaml approves something else than the record orders"


def test_an_approver_who_left_the_list_voids_the_approval(harness: NodeHarness) -> None:
    harness.put(harness.record())
    nobody = config(CONFIG.replace(b"approver@example.com", b"another@example.com"))
    found = admit(harness.path, harness.files, nobody, NOW)
    assert isinstance(found, NotAdmitted)
    assert found.phase is Phase.LAPSED


@pytest.mark.parametrize("name", ["closed.yaml", "outcome-1.yaml"])
def test_what_has_ended_is_not_begun_again(harness: NodeHarness, name: str) -> None:
    harness.put(harness.record())
    harness.files[f"{harness.directory}/{name}"] = b""
    found = judged(harness)
    assert isinstance(found, NotAdmitted)
    assert found.phase is Phase.LAPSED


UNREADABLE = {
    "empty": b"",
    "not YAML": b"a: [",
    "a list": b"- 1",
    "two": b"a: 1\n---\na: 1\n",
    "another kind": b"apiVersion: clusterwright.dev/v1alpha1\nkind: Approval\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_record_is_unreadable_and_says_where(harness: NodeHarness, name: str) -> None:
    harness.files[harness.path] = UNREADABLE[name]
    found = judged(harness)
    assert isinstance(found, UnreadableRecord)
    assert str(found.faults[0]).startswith(f"{harness.path}:")


def test_an_unknown_field_or_a_time_without_zone_is_unreadable(harness: NodeHarness) -> None:
    text = dump(harness.record())
    for changed in (text + b"extra: 1\n", text.replace(b"T12:00:00Z", b"T12:00:00")):
        harness.files[harness.path] = changed
        assert isinstance(judged(harness), UnreadableRecord)


def test_an_approval_that_cannot_be_read_refuses_the_record(harness: NodeHarness) -> None:
    harness.put(harness.record())
    harness.files[f"{harness.directory}/approval-1.yaml"] = b"- 1"
    found = judged(harness)
    assert isinstance(found, NotAdmitted)
    assert found.reason.startswith(f"an approval cannot be read: {harness.directory}/approval-1.yaml:1: ")


@given(st.binary(max_size=200))
def test_no_bytes_make_admission_raise(content: bytes) -> None:
    path = "incidents/2026/11/gpu-01-abc123/repair-1.yaml"
    assert isinstance(admit(path, {path: content}, config(), NOW), UnreadableRecord)


def test_open_records_are_those_without_outcome_in_open_incidents() -> None:
    paths = frozenset(
        {
            "incidents/2026/11/a/repair-1.yaml",
            "incidents/2026/11/a/outcome-1.yaml",
            "incidents/2026/11/a/repair-2.yaml",
            "incidents/2026/11/b/repair-1.yaml",
            "incidents/2026/11/b/closed.yaml",
            "incidents/2026/11/c/opened.yaml",
            "incidents/2026/11/d/e/repair-1.yaml",
            "incidents/2026/11/f/repair-0.yaml",
            "repair-1.yaml",
        }
    )
    assert open_records(paths) == ("incidents/2026/11/a/repair-2.yaml",)
    assert outcome_path("incidents/2026/11/a/repair-2.yaml") == "incidents/2026/11/a/outcome-2.yaml"


def test_the_action_id_is_the_one_that_is_written_on_the_node(harness: NodeHarness) -> None:
    record = harness.record()
    assert record.action_id == action_id("example", harness.node_uid, harness.incident, 1)
