"""The incident's table, every cell of it."""

from dataclasses import replace

import pytest

from bot.incidents.incident import TABLE, IncidentEvent, State, is_worse, transition, worst
from checks.finding import Action, Severity
from tests.bot.samples import finding, in_state, incident, offer, pod

O, L, D, A, R, N, H, C = State  # noqa: E741 - one letter a column of the table below

EXPECTED = {
    #                            open lapsed deciding approved repairing declined held closed
    IncidentEvent.FINDINGS_CHANGED:     (O,   L,     O,       None,    None,     N,       H,   None),
    IncidentEvent.FINDINGS_WORSENED:    (O,   O,     O,       None,    None,     O,       H,   None),
    IncidentEvent.FINDINGS_CLEARED:     (C,   C,     C,       None,    None,     C,       None, None),
    IncidentEvent.OFFER_CHANGED:        (O,   None,  O,       None,    None,     None,    None, None),
    IncidentEvent.OFFER_LAPSED:         (L,   None,  L,       None,    None,     None,    None, None),
    IncidentEvent.RENEWED:              (None, O,    None,    None,    None,     O,       O,   None),
    IncidentEvent.RESOLVED:             (None, None, None,    None,    None,     None,    C,   None),
    IncidentEvent.DECIDED:              (D,   None,  None,    None,    None,     None,    None, None),
    IncidentEvent.DECISION_DROPPED:     (None, None, O,       None,    None,     None,    None, None),
    IncidentEvent.APPROVAL_RECORDED:    (A,   A,     A,       None,    None,     A,       A,   None),
    IncidentEvent.REJECTION_RECORDED:   (N,   N,     N,       None,    None,     None,    None, None),
    IncidentEvent.REPAIR_STARTED:       (None, None, None,    R,       None,     None,    None, None),
    IncidentEvent.REPAIR_SUCCEEDED:     (None, None, None,    C,       C,        None,    None, None),
    IncidentEvent.REPAIR_UNDONE:        (None, None, None,    O,       O,        None,    None, None),
    IncidentEvent.REPAIR_HELD:          (None, None, None,    H,       H,        None,    None, None),
    IncidentEvent.NODE_GONE:            (C,   C,     C,       None,    None,     C,       C,   None),
    IncidentEvent.CLOSE_RECORDED:       (C,   C,     C,       C,       C,        C,       C,   None),
}  # fmt: skip

CELLS = [(state, event) for state in State for event in IncidentEvent]


def test_the_expected_table_has_every_event() -> None:
    assert set(EXPECTED) == set(IncidentEvent)


@pytest.mark.parametrize(("state", "event"), CELLS, ids=[f"{s.value}-{e.value}" for s, e in CELLS])
def test_every_cell_of_the_table_is_as_decided(state: State, event: IncidentEvent) -> None:
    assert TABLE.get((state, event)) is EXPECTED[event][list(State).index(state)]


@pytest.mark.parametrize(("state", "event"), CELLS, ids=[f"{s.value}-{e.value}" for s, e in CELLS])
def test_an_event_moves_the_incident_and_its_revision_or_changes_nothing(
    state: State, event: IncidentEvent
) -> None:
    before = in_state(state)
    after = transition(before, event, attempt=9)
    if (state, event) not in TABLE:
        assert after is None
    else:
        assert after is not None
        assert (after.state, after.revision, after.attempt) == (TABLE[state, event], before.revision + 1, 9)


def test_nothing_follows_closed() -> None:
    assert not [event for state, event in TABLE if state is State.CLOSED]


def test_every_state_can_be_reached_and_left_for_closed() -> None:
    reached, edge = {State.OPEN}, {State.OPEN}
    while edge:
        edge = {after for (state, _), after in TABLE.items() if state in edge} - reached
        reached |= edge
    assert reached == set(State)
    leaving = {state for (state, _), after in TABLE.items() if after is State.CLOSED}
    assert leaving == set(State) - {State.CLOSED}


def test_the_offer_digest_changes_with_everything_an_approver_was_shown() -> None:
    base = incident()
    others = [
        replace(base, node_uid="uid-02"),
        replace(base, boot_id="other"),
        replace(base, attempt=2),
        replace(base, findings=(finding(code="79"),)),
        replace(base, findings=(finding(severity=Severity.WARNING),)),
        replace(base, offer=offer(pod(), pod("worker-1"))),
        replace(base, offer=offer(pod(), minutes=30)),
        replace(base, offer=None),
        replace(base, id="gpu-01-ffffff"),
    ]
    assert len({each.offer_digest for each in (base, *others)}) == len(others) + 1


def test_the_offer_digest_does_not_change_with_counts_and_words() -> None:
    base = incident()
    noisier = replace(
        base, findings=(finding(count=1_000, summary="other words", last_seen=9e9),), revision=7
    )
    assert noisier.offer_digest == base.offer_digest


def test_the_path_is_by_month_of_opening() -> None:
    assert incident().path == "incidents/2026/11/gpu-01-a1b2c3"


def test_the_worst_finding_names_the_incident_and_the_earliest_wins_a_tie() -> None:
    early = finding(code="48", first_seen=1.0)
    late = finding(code="79", first_seen=2.0)
    mild = finding(code="13", severity=Severity.WARNING, first_seen=0.0)
    odd = finding(code="999", severity=Severity.UNKNOWN, action=Action.ASK, first_seen=0.0)
    assert worst((mild, late, early, odd)) is early
    assert worst((mild, odd)) is odd


def test_worse_is_a_new_fault_or_a_known_one_at_a_higher_severity() -> None:
    one, two = finding(), finding(code="79")
    mild = finding(severity=Severity.WARNING)
    assert is_worse((one,), (one, two))
    assert is_worse((mild,), (one,))
    assert not is_worse((one, two), (one,))
    assert not is_worse((one,), (mild,))
    assert not is_worse((one,), (finding(count=50),))
