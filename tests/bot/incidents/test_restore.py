"""The files of an incident are its state: every way to write them, lose some of them, and read them back."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
import yaml

from bot.incidents import next_commit as events
from bot.incidents.incident import Closure, Incident, IncidentEvent, State, transition
from bot.incidents.next_commit import wanted
from bot.incidents.restore import IncidentRecords, catch_up, read_records, restore
from reconciler.incidents.digests import action_id
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import TS, CloseReason, RepairOutcome, ThreadOpened
from reconciler.source import recording
from tests.bot.samples import NOW, OTHER, decision, finding, in_state, incident, offer, outcome, pod

CHANNEL = ("C0INCIDENTS", "1796008365.000100")


def recorded(*made: recording.Commit, **more: bytes) -> IncidentRecords:
    """The records in the files of some events; `more` adds files by name."""
    files = {path.split("/")[-1]: text.encode() for each in made for path, text in each.files.items()}
    return read_records(
        "incidents/2026/11/gpu-01-a1b2c3", files | {f"{n.replace('_', '-')}.yaml": t for n, t in more.items()}
    )


def written(value: RepairOutcome) -> bytes:
    return yaml.safe_dump(value.model_dump(mode="json", by_alias=True, exclude_none=True)).encode()


def some(found: recording.Commit | None) -> recording.Commit:
    assert found is not None
    return found


def back(found: Incident | None) -> Incident:
    assert found is not None
    return found


OPENED = events.opened(incident())
THREAD = events.in_thread(incident(), *CHANNEL)
APPROVED = some(events.decision(in_state(State.DECIDING)))
REJECTED = some(
    events.decision(replace(in_state(State.DECIDING), decision=decision(approves=False, reason="no: wait")))
)
CLOSED = some(
    events.closed(incident(state=State.CLOSED, ending=Closure(CloseReason.CLEARED, NOW + timedelta(hours=1))))
)


def test_opened_says_what_is_needed_to_go_on_after_a_crash() -> None:
    found = back(restore(recorded(OPENED)))
    assert found.recorded == {"opened.yaml"}
    assert replace(found, recorded=frozenset(), offer=incident().offer) == incident()


def test_opened_names_the_boards_that_are_known_and_they_are_read_back() -> None:
    made = events.opened(incident(boards=(("0000:1b:00.0", "1653923026510"),)))
    (text,) = made.files.values()
    assert yaml.safe_load(text)["boards"] == {"0000:1b:00.0": "1653923026510"}
    assert back(restore(recorded(made))).boards == (("0000:1b:00.0", "1653923026510"),)
    assert "boards" not in next(iter(OPENED.files.values()))


def test_an_approval_is_one_commit_of_two_files_by_the_approver_with_trailers() -> None:
    assert sorted(path.split("/")[-1] for path in APPROVED.files) == ["approval-1.yaml", "repair-1.yaml"]
    assert APPROVED.author == recording.Person("Example Approver", "approver@example.com")
    assert [key for key, _ in APPROVED.trailers] == ["Incident", "Node", "Action", "Approved-by"]
    record = yaml.safe_load(next(text for path, text in APPROVED.files.items() if "repair-1" in path))
    about = incident()
    assert record["actionId"] == action_id("example", "uid-01", about.id, 1)
    assert record["evidence"]["evidenceDigest"] == about.evidence_digest
    assert record["evidence"]["planDigest"] == (about.offer or offer()).plan.digest
    assert record["evidence"]["findings"] == [finding().key]
    assert record["approvals"] == ["approval-1.yaml"]


def test_every_file_is_read_back_as_it_was_written() -> None:
    files = recorded(OPENED, THREAD, APPROVED, REJECTED, CLOSED)
    assert files.faults == ()
    assert set(files.records) == {
        "opened.yaml", "thread.yaml", "approval-1.yaml", "repair-1.yaml", "rejected-1.yaml", "closed.yaml",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("files", "state", "attempt"),
    [
        (recorded(OPENED), State.OPEN, 1),
        (recorded(OPENED, THREAD), State.OPEN, 1),
        (recorded(OPENED, APPROVED), State.APPROVED, 1),
        (recorded(OPENED, REJECTED), State.DECLINED, 1),
        (recorded(OPENED, REJECTED, APPROVED), State.APPROVED, 1),
        (recorded(OPENED, APPROVED, outcome_1=written(outcome())), State.CLOSED, 1),
        (recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.FAILED))), State.OPEN, 2),
        (recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.CANCELLED))), State.OPEN, 2),
        (recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.LAPSED))), State.OPEN, 2),
        (recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.HELD))), State.HELD, 2),
        (recorded(OPENED, CLOSED), State.CLOSED, 1),
    ],
)
def test_state_is_the_fold_over_the_files(files: IncidentRecords, state: State, attempt: int) -> None:
    found = back(restore(files))
    assert (found.state, found.attempt) == (state, attempt)


def test_an_outcome_never_counts_before_its_repair_however_the_clocks_differ() -> None:
    early = outcome(Phase.LAPSED, finished_at=NOW - timedelta(hours=1))
    found = back(restore(recorded(OPENED, APPROVED, outcome_1=written(early))))
    assert (found.state, found.attempt) == (State.OPEN, 2)


def test_the_decision_read_back_is_the_one_that_was_made() -> None:
    approved = back(restore(recorded(OPENED, APPROVED)))
    assert approved.decision == decision()
    assert approved.offer is not None
    assert approved.offer.plan == (incident().offer or offer()).plan
    declined = back(restore(recorded(OPENED, REJECTED)))
    assert declined.decision is not None
    assert (declined.decision.reason, declined.decision.person.name) == ("no: wait", "Example Approver")


def test_reading_the_same_files_twice_changes_nothing() -> None:
    files = recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.FAILED)))
    once = back(restore(files))
    assert catch_up(once, files) == once


def test_a_living_incident_catches_up_with_each_file_as_it_comes() -> None:
    stages = [
        recorded(OPENED),
        recorded(OPENED, THREAD),
        recorded(OPENED, THREAD, APPROVED),
        recorded(OPENED, THREAD, APPROVED, outcome_1=written(outcome())),
    ]
    seen = [incident(state=State.OPEN)]
    for files in stages:
        seen.append(catch_up(seen[-1], files))
    assert [each.state for each in seen] == [State.OPEN, State.OPEN, State.OPEN, State.APPROVED, State.CLOSED]
    assert all(before.revision <= after.revision for before, after in pairwise(seen))
    assert seen[-1].ending == Closure(CloseReason.REPAIRED, outcome().finished_at)


def test_a_decision_in_flight_gives_way_to_the_one_that_git_has() -> None:
    ours = replace(in_state(State.DECIDING), decision=decision(person=OTHER))
    found = catch_up(ours, recorded(OPENED, APPROVED))
    assert found.state is State.APPROVED
    assert found.decision is not None
    assert found.decision.person.name == "Example Approver"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"- a",
        b"kind: [",
        b"apiVersion: clusterwright.dev/v1alpha1\nkind: Thread\nunknown: 1\n",
        b"\xff\xfe",
        b"incident: 2026-13-45\n",
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_rest_counts(text: bytes) -> None:
    files = recorded(OPENED, thread=text)
    assert files.thread is None
    assert len(files.faults) == 1
    assert "thread.yaml" in files.faults[0]
    assert back(restore(files)).state is State.OPEN


def test_files_of_others_are_passed_over() -> None:
    assert recorded(OPENED, notes=b"anything", snoozed_1=b"anything").faults == ()


def test_without_its_first_file_there_is_no_incident() -> None:
    assert restore(recorded(THREAD)) is None


def test_a_ts_is_text_of_ten_and_six_digits() -> None:
    assert TS.startswith("^")
    for bad in ("1796008365", "1796008365.1", "1796008365.0001000"):
        with pytest.raises(ValueError, match="ts"):
            ThreadOpened(incident="i", channel="C1", ts=bad)


def test_what_git_lacks_is_wanted_in_order_and_decisions_before_threads() -> None:
    names = {"opened.yaml"}
    fresh, deciding = incident(), in_state(State.DECIDING)
    assert wanted(fresh, CHANNEL) == OPENED
    assert wanted(replace(fresh, recorded=frozenset(names)), CHANNEL) == THREAD
    assert wanted(replace(fresh, recorded=frozenset(names)), None) is None
    assert wanted(deciding, CHANNEL) == events.opened(deciding)
    assert wanted(replace(deciding, recorded=frozenset(names)), CHANNEL) == APPROVED
    closed = incident(
        state=State.CLOSED,
        ending=Closure(CloseReason.CLEARED, NOW),
        recorded=frozenset({*names, "thread.yaml"}),
    )
    assert wanted(closed, CHANNEL) == events.closed(closed)
    assert wanted(replace(closed, recorded=closed.recorded | {"closed.yaml"}), CHANNEL) is None


def test_the_same_decision_has_the_same_id_and_another_persons_has_another() -> None:
    mine = in_state(State.DECIDING)
    later = replace(mine, decision=decision(at=NOW + timedelta(minutes=9)))
    theirs = replace(mine, decision=decision(person=OTHER))
    ids = [some(events.decision(each)).decision_id for each in (mine, later, theirs)]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]


def test_rejections_are_numbered_by_those_before() -> None:
    second = replace(
        in_state(State.DECIDING), decision=decision(approves=False), recorded=frozenset({"rejected-1.yaml"})
    )
    assert [path.split("/")[-1] for path in some(events.decision(second)).files] == ["rejected-2.yaml"]


def test_a_second_attempt_has_its_own_files_and_action() -> None:
    again = back(restore(recorded(OPENED, APPROVED, outcome_1=written(outcome(Phase.FAILED)))))
    offered = transition(again, IncidentEvent.OFFER_CHANGED, offer=offer(pod()))
    deciding = transition(back(offered), IncidentEvent.DECIDED, decision=decision(attempt=2))
    made = some(events.decision(back(deciding)))
    assert sorted(path.split("/")[-1] for path in made.files) == ["approval-2.yaml", "repair-2.yaml"]
    assert (
        action_id("example", "uid-01", again.id, 2)
        in next(iter(made.files.values())) + list(made.files.values())[1]
    )
