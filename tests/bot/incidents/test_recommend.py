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


def test_a_link_that_failed_again_and_again_is_not_made_well_by_the_reset_that_the_driver_asks_for() -> None:
    asked = finding(code="154", action=Action.RESET_GPU)
    again, first = finding(code="74", action=Action.FAILOVER), finding(code="74", action=Action.REBOOT)
    assert leading((asked, again)) is again
    assert leading((asked, first)) is asked


def test_the_heaviest_action_leads() -> None:
    reset = finding(code="48", action=Action.RESET_GPU, gpu="0000:01:00.0")
    lost = finding(code="79", action=Action.FAILOVER, gpu="0000:02:00.0")
    ask = finding(code="999", action=Action.ASK, severity=Severity.UNKNOWN, gpu="0000:03:00.0")
    assert leading((reset, ask, lost)) is lost
    assert leading((ask, reset)) is reset


def test_the_drivers_own_word_replaces_the_verdict_of_its_gpu_in_the_same_moment() -> None:
    lost = finding(code="79", action=Action.FAILOVER, first_seen=100.0, last_seen=100.0)
    word = finding(first_seen=105.0, last_seen=105.0)
    late = finding(first_seen=111.0, last_seen=111.0)
    elsewhere = finding(gpu="0000:5d:00.0", first_seen=105.0, last_seen=105.0)
    undecided = finding(action=Action.ASK, severity=Severity.UNKNOWN, first_seen=105.0, last_seen=105.0)
    assert leading((lost, word)) is word
    for other in (late, elsewhere, undecided):
        assert leading((lost, other)) is lost


def test_an_agent_that_cannot_see_is_explained_as_such() -> None:
    blind = finding(
        check="log-blind", subsystem="agent", code="log-blind", action=Action.ASK, severity=Severity.WARNING
    )
    found = recommend(Cause.AGENT, (blind,), KIND)
    assert "cannot see" in found.why
    assert found.offered is None
