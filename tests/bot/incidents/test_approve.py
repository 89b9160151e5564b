"""Who may decide what, when: every denial, and that nothing unreadable ever grants."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from bot.incidents.approve import (
    Account,
    Denial,
    Denied,
    Granted,
    NodeObservation,
    decide,
    decide_again,
    decide_rejection,
    decide_reopening,
)
from bot.incidents.incident import State
from tests.bot.samples import (
    NOW,
    OTHER,
    account,
    config,
    decision,
    in_state,
    incident,
    observation,
    pod,
    request,
)

LATER = NOW + timedelta(minutes=5)


def verdict_of(found: Granted | Denied | None) -> Denial | None:
    return found.why if isinstance(found, Denied) else None


def test_an_approver_approves_what_is_shown_for_as_long_as_the_policy_says() -> None:
    about = incident()
    found = decide(request(about), about, config(), observation(), LATER)
    assert isinstance(found, Granted)
    assert found.person.email == "approver@example.com"
    assert found.person.slack == "U0APPROVER"
    assert found.expires_at == LATER + timedelta(minutes=60)


def test_the_email_is_compared_without_case_and_the_listed_spelling_is_recorded() -> None:
    about = incident()
    found = decide(
        request(about, account=account(email="Approver@Example.COM")), about, config(), observation(), LATER
    )
    assert isinstance(found, Granted)
    assert found.person.email == "approver@example.com"


@pytest.mark.parametrize(
    ("who", "why"),
    [
        (None, Denial.ACCOUNT_UNREADABLE),
        (account(bot=True), Denial.NOT_A_PERSON),
        (account(gone=True), Denial.NOT_A_PERSON),
        (account(guest=True), Denial.GUEST),
        (account(email=None), Denial.NO_EMAIL),
        (account(email=""), Denial.NO_EMAIL),
        (account(email="visitor@example.com"), Denial.NOT_AN_APPROVER),
        (account(email="approver@example.com.evil.example"), Denial.NOT_AN_APPROVER),
    ],
)
def test_only_listed_people_decide_approve_reject_or_reopen(who: Account | None, why: Denial) -> None:
    about = incident()
    clicked = request(about, account=who)
    assert verdict_of(decide(clicked, about, config(), observation(), LATER)) is why
    assert verdict_of(decide_rejection(clicked, about, config(), LATER)) is why
    assert verdict_of(decide_reopening(clicked, in_state(State.LAPSED), config())) is why
    assert verdict_of(decide_again(clicked, about, config(), observation())) is why


def test_without_the_list_of_approvers_nobody_decides() -> None:
    about = incident()
    assert verdict_of(decide(request(about), about, None, observation(), LATER)) is Denial.NO_ACCESS_LIST
    assert verdict_of(decide_rejection(request(about), about, None, LATER)) is Denial.NO_ACCESS_LIST


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (None, Denial.NODE_UNREADABLE),
        (observation(node_uid=None), Denial.NODE_CHANGED),
        (observation(node_uid="uid-99"), Denial.NODE_CHANGED),
        (observation(boot_id="another"), Denial.NODE_CHANGED),
        (observation(fresh=False), Denial.FINDINGS_CHANGED),
        (observation(uncovered_pods=(pod("new"),)), Denial.PLAN_CHANGED),
    ],
)
def test_an_approval_of_something_else_than_the_world_is_denied(
    seen: NodeObservation | None, why: Denial
) -> None:
    about = incident()
    assert verdict_of(decide(request(about), about, config(), seen, LATER)) is why
    assert verdict_of(decide_again(request(about), about, config(), seen)) is why


def test_a_changed_plan_names_the_new_pods() -> None:
    about = incident()
    found = decide(request(about), about, config(), observation(uncovered_pods=(pod("new"),)), LATER)
    assert isinstance(found, Denied)
    assert found.detail == "train/new"


def test_a_click_on_an_older_message_decides_nothing() -> None:
    about = incident(revision=4)
    for clicked in (
        request(about, revision=3),
        request(about, revision=5),
        request(about, offer_digest="0" * 16),
    ):
        assert verdict_of(decide(clicked, about, config(), observation(), LATER)) is Denial.SUPERSEDED
        assert verdict_of(decide_rejection(clicked, about, config(), LATER)) is Denial.SUPERSEDED


def test_an_offer_can_be_taken_to_the_last_moment_and_not_after() -> None:
    about = incident()
    assert about.offer is not None
    end = about.offer.expires_at
    assert isinstance(
        decide(request(about), about, config(), observation(), end - timedelta(microseconds=1)), Granted
    )
    found = decide(request(about), about, config(), observation(), end)
    assert (verdict_of(found), found.at if isinstance(found, Denied) else None) == (Denial.LAPSED, end)


@pytest.mark.parametrize(
    "state", [State.DECIDING, State.APPROVED, State.REPAIRING, State.DECLINED, State.HELD]
)
def test_who_comes_second_is_told_who_was_first_and_when(state: State) -> None:
    made = decision(person=OTHER)
    about = replace(incident(), state=state, decision=made)
    found = decide(request(about), about, config(), observation(), LATER)
    assert found == Denied(Denial.ALREADY_DECIDED, "Second Approver", made.at)


def test_a_lapsed_offer_is_lapsed_even_if_an_earlier_attempt_was_decided() -> None:
    about = replace(incident(), state=State.LAPSED, decision=decision(), attempt=2)
    assert verdict_of(decide(request(about), about, config(), observation(), LATER)) is Denial.LAPSED


def test_a_closed_incident_is_closed_and_one_without_offer_offers_nothing() -> None:
    closed = incident(state=State.CLOSED)
    assert verdict_of(decide(request(closed), closed, config(), observation(), LATER)) is Denial.CLOSED
    bare = incident(offer=None)
    assert verdict_of(decide(request(bare), bare, config(), observation(), LATER)) is Denial.NOTHING_OFFERED


def test_reopening_is_for_incidents_that_wait_for_it() -> None:
    may = {State.LAPSED, State.DECLINED, State.HELD}
    for state in State:
        found = decide_reopening(request(incident()), in_state(state), config())
        assert isinstance(found, Granted) == (state in may)


def test_no_combination_with_anything_unreadable_or_different_is_granted() -> None:
    about = incident()
    accounts = (account(), None, account(guest=True))
    configs = (config(), None, config(("Somebody", "else@example.com")))
    observations = (
        observation(),
        None,
        observation(fresh=False),
        observation(uncovered_pods=(pod("late"),)),
        observation(boot_id="x"),
    )
    digests = (about.offer_digest, "0" * 16)
    times = (LATER, NOW + timedelta(hours=2))
    for who, listed, seen, offer_digest, now in product(accounts, configs, observations, digests, times):
        good = (who, listed, seen, offer_digest, now) == (
            accounts[0],
            configs[0],
            observations[0],
            digests[0],
            times[0],
        )
        found = decide(request(about, account=who, offer_digest=offer_digest), about, listed, seen, now)
        assert isinstance(found, Granted) == good


def test_a_waiting_approval_holds_while_the_world_does() -> None:
    about = in_state(State.DECIDING)
    assert decide_again(request(about), about, config(), observation()) is None
