"""The one order of severities and the one order of actions."""

from itertools import pairwise

from checks.finding import Action, Severity


def test_unknown_is_worse_than_a_warning_and_less_than_critical() -> None:
    order = [Severity.INFO, Severity.APP, Severity.WARNING, Severity.UNKNOWN, Severity.CRITICAL]
    assert sorted(Severity, key=lambda each: each.rank) == order
    assert [each.rank for each in order] == list(range(len(Severity)))


def test_each_action_disturbs_the_node_more_than_the_one_before() -> None:
    order = [
        Action.NONE,
        Action.ASK,
        Action.RESET_GPU,
        Action.REBOOT,
        Action.REPROVISION,
        Action.FAILOVER,
        Action.REMOVE,
    ]
    assert set(order) == set(Action)
    assert all(lighter.rank < heavier.rank for lighter, heavier in pairwise(order))
