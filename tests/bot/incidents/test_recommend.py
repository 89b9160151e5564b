"""First action → what people are offered; nothing is offered that cannot be carried out."""

import pytest

from bot.incidents.recommend import OFFER_RULES, UNREACHABLE, leading, recommend
from checks.finding import Action, Severity
from reconciler.incidents.records import Cause
from reconciler.repair.actions.registry import ACTIONS
from reconciler.repair.providers.redfish import KIND
from tests.bot.samples import finding

WANTED = {
    Action.NONE: None,
    Action.ASK: None,
    Action.RESET_GPU: Action.REBOOT,
    Action.REBOOT: Action.REBOOT,
    Action.REPROVISION: None,
    Action.FAILOVER: Action.REBOOT,
    Action.REMOVE: None,
}


@pytest.mark.parametrize("action", list(Action), ids=lambda each: each.value)
def test_each_first_action_is_offered_as_decided(action: Action) -> None:
    found = recommend(Cause.GPU, (finding(code="0", action=action),), KIND)
    assert (found.wanted, found.offered) == (action, WANTED[action])
    assert found.why
    assert bool(found.but) == (action not in (Action.NONE, Action.ASK, Action.REBOOT))


@pytest.mark.parametrize("action", list(Action), ids=lambda each: each.value)
def test_only_a_registered_action_is_offered(action: Action) -> None:
    offered = recommend(Cause.GPU, (finding(action=action),), KIND).offered
    assert offered is None or offered in ACTIONS


@pytest.mark.parametrize("action", list(Action), ids=lambda each: each.value)
def test_a_node_without_a_provider_is_offered_nothing_and_the_reason_is_given(action: Action) -> None:
    found = recommend(Cause.GPU, (finding(action=action),), None)
    assert found.offered is None
    if WANTED[action]:
        assert found.but == UNREACHABLE


def test_what_is_not_built_says_so() -> None:
    for action in (Action.RESET_GPU, Action.REPROVISION, Action.FAILOVER, Action.REMOVE):
        assert "This version cannot" in OFFER_RULES[action].missing


def test_a_reboot_in_place_of_a_failover_says_that_it_may_not_help() -> None:
    found = recommend(Cause.GPU, (finding(code="79", action=Action.FAILOVER),), KIND)
    assert "keeps the node and may not help" in found.but
    assert "fallen off the bus" in found.why


def test_the_heaviest_action_leads() -> None:
    reset = finding(code="48", action=Action.RESET_GPU, gpu="0000:01:00.0")
    lost = finding(code="79", action=Action.FAILOVER, gpu="0000:02:00.0")
    ask = finding(code="999", action=Action.ASK, severity=Severity.UNKNOWN, gpu="0000:03:00.0")
    assert leading((reset, ask, lost)) is lost
    assert leading((ask, reset)) is reset


def test_a_heavier_finding_leads_whatever_the_driver_names_beside_it() -> None:
    named = finding(code="154", action=Action.RESET_GPU)
    heavier = finding(code="74", action=Action.FAILOVER)
    assert leading((named, heavier)) is heavier
    assert leading((heavier, named)) is heavier


def test_of_equal_actions_the_one_that_the_driver_names_explains_the_recommendation() -> None:
    lost = finding(code="79", action=Action.REBOOT, first_seen=100.0)
    named = finding(code="154", action=Action.REBOOT, first_seen=105.0)
    assert leading((lost, named)) is named
    assert recommend(Cause.GPU, (lost, named), KIND).why == "The driver asks for this repair."


def test_a_recovery_that_the_driver_leaves_to_a_person_explains_nothing() -> None:
    unknown = finding(code="173", action=Action.ASK, severity=Severity.UNKNOWN, first_seen=100.0)
    unread = finding(code="154", action=Action.ASK, severity=Severity.UNKNOWN, first_seen=105.0)
    assert leading((unread, unknown)) is unknown
    assert "driver itself" not in recommend(Cause.GPU, (unread,), KIND).why


def test_an_agent_that_cannot_see_is_explained_as_such() -> None:
    blind = finding(
        check="log-blind", subsystem="agent", code="log-blind", action=Action.ASK, severity=Severity.WARNING
    )
    found = recommend(Cause.AGENT, (blind,), KIND)
    assert "cannot see" in found.why
    assert found.offered is None
