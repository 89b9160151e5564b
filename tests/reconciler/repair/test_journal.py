"""Invariant: what happened is never taken back, and an ending never changes."""

from datetime import timedelta

import pytest

from reconciler.incidents.progress import Phase, StepState
from reconciler.repair import journal
from reconciler.repair.resource import PreState, RepairStatus
from reconciler.repair.step import Facts
from reconciler.repair.steps.cordon import CORDON
from reconciler.repair.steps.restart import RESTART
from tests.reconciler.harness import START

LATER = START + timedelta(seconds=5)
EMPTY = RepairStatus()
INTENDED = journal.intend(EMPTY, CORDON, "cordon the node", START)


def test_the_first_intent_starts_the_repair() -> None:
    assert (INTENDED.phase, INTENDED.started_at, INTENDED.step) == (Phase.RUNNING, START, CORDON.name)
    (entry,) = INTENDED.steps
    assert (entry.state, entry.started_at, entry.finished_at) == (StepState.INTENT, START, None)


def test_a_resumed_step_keeps_its_start() -> None:
    again = journal.intend(INTENDED, CORDON, "cordon the node", LATER)
    assert again == INTENDED


def test_the_time_of_a_step_that_was_done_starts_again_with_it() -> None:
    done = journal.done(INTENDED, CORDON, "cordoned", LATER)
    (entry,) = journal.intend(done, CORDON, "again", LATER).steps
    assert (entry.state, entry.started_at, entry.finished_at) == (StepState.INTENT, LATER, None)
    (entry,) = journal.looked(done, CORDON.name, "waits", LATER).steps
    assert (entry.state, entry.started_at, entry.finished_at) == (StepState.WAITING, LATER, None)


def test_the_first_look_at_a_step_that_waits_is_kept() -> None:
    first = journal.looked(EMPTY, CORDON.name, "another action has marked the node", START)
    assert journal.looked(first, CORDON.name, "still", LATER) is first
    assert journal.first_look(first, CORDON.name) == START
    assert journal.attempts(first, CORDON.name) == 0
    (entry,) = journal.intend(first, CORDON, "cordon the node", LATER).steps
    assert (entry.state, entry.started_at) == (StepState.INTENT, START)


def test_what_a_step_takes_is_listed_once_until_it_is_given_back() -> None:
    assert [each.step for each in INTENDED.undo] == ["cordon"]
    assert journal.done(INTENDED, CORDON, "cordoned", LATER).undo == INTENDED.undo
    assert [each.step for each in journal.done(EMPTY, CORDON, "cordoned", LATER).undo] == ["cordon"]
    assert journal.gave_back(INTENDED, "cordon").undo == ()


def test_a_step_seen_done_is_noted_once() -> None:
    done = journal.done(INTENDED, CORDON, "cordoned", LATER)
    (entry,) = done.steps
    assert (entry.state, entry.started_at, entry.finished_at) == (StepState.DONE, START, LATER)
    assert journal.done(done, CORDON, "cordoned", LATER + timedelta(seconds=1)) is done
    assert journal.is_done(done, CORDON.name)


def test_a_step_that_was_done_without_us_is_noted_too() -> None:
    (entry,) = journal.done(EMPTY, CORDON, "the node was cordoned already", START).steps
    assert (entry.state, entry.started_at, entry.finished_at) == (StepState.DONE, START, START)


def test_an_attempt_without_effect_is_kept_and_the_next_has_its_own_entry() -> None:
    first = journal.intend(EMPTY, RESTART, "GracefulRestart", START)
    failed = journal.not_done(first, RESTART.name, "had no effect", LATER)
    second = journal.intend(failed, RESTART, "ForceRestart", LATER)
    assert [(each.state, each.message) for each in second.steps] == [
        (StepState.NOT_DONE, "had no effect"),
        (StepState.INTENT, "ForceRestart"),
    ]
    assert [journal.attempts(each, RESTART.name) for each in (EMPTY, first, failed, second)] == [0, 1, 1, 2]
    assert [journal.may_have_happened(each) for each in (EMPTY, first, failed, second)] == [
        False,
        True,
        False,
        True,
    ]


def test_an_attempt_that_worked_after_it_was_given_up_has_its_own_entry_and_may_have_happened() -> None:
    failed = journal.not_done(journal.intend(EMPTY, RESTART, "restart", START), RESTART.name, "none", LATER)
    done = journal.done(failed, RESTART, "the node has booted", LATER)
    assert [each.state for each in done.steps] == [StepState.NOT_DONE, StepState.DONE]
    assert journal.may_have_happened(done)


def test_a_step_without_an_attempt_has_none_that_failed() -> None:
    assert journal.not_done(EMPTY, RESTART.name, "none", START) is EMPTY


def test_the_world_before_is_remembered_once() -> None:
    before = PreState(boot_id="a", power="on", unschedulable=False)
    other = PreState(boot_id="b", power="on", unschedulable=True)
    assert journal.remember(journal.remember(EMPTY, before), other).pre_state == before


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase.final])
@pytest.mark.parametrize("second", [phase for phase in Phase if phase.final])
def test_an_ending_never_changes(phase: Phase, second: Phase) -> None:
    ended = journal.end(INTENDED, phase, "why", LATER, "owner")
    assert (ended.phase, ended.message, ended.finished_at, ended.held_by) == (phase, "why", LATER, "owner")
    assert journal.end(ended, second, "another reason", LATER) is ended


def test_a_status_survives_the_api_server() -> None:
    status = journal.end(
        journal.note(INTENDED, CORDON.name, Facts(heartbeat="beat")), Phase.HELD, "why", LATER, "owner"
    )
    assert RepairStatus.model_validate(status.model_dump(mode="json", by_alias=True)) == status
