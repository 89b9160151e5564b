"""Clicks, from the button to Git: who may decide, about what, and what has to be as it was shown."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.incidents.approve import Denial, Denied
from bot.incidents.incident import State
from tests.bot.fakes import Late, Limited
from tests.bot.loop_harness import APPROVER, SECOND, VISITOR, BotLoops, running_pod
from tests.bot.samples import NEW_BOOT, OTHER, account, config, finding

BEFORE = ["opened.yaml", "thread.yaml"]
AFTER = ["approval-1.yaml", "opened.yaml", "repair-1.yaml", "thread.yaml"]


def why(denied: Denied | None) -> Denial | None:
    return denied.why if denied else None


def test_an_approval_is_one_commit_and_takes_the_buttons_away(asked: BotLoops) -> None:
    assert asked.click("approve") is None
    assert asked.files() == AFTER
    assert [sorted(each.files) for each in asked.git.commits][-1] == [
        f"{asked.incident.path}/approval-1.yaml", f"{asked.incident.path}/repair-1.yaml",
    ]  # fmt: skip
    assert asked.buttons() == {}
    assert "Approved by Example Approver" in asked.replies[0]


def test_a_rejection_is_recorded_and_the_repair_can_be_offered_again(asked: BotLoops) -> None:
    assert asked.click("reject", SECOND.id, reason="a job needs two more hours") is None
    assert "rejected-1.yaml" in asked.files()
    assert set(asked.buttons()) == {"renew"}
    assert asked.click("renew") is None
    assert asked.click("approve") is None
    assert "repair-1.yaml" in asked.files()


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (VISITOR, Denial.NOT_AN_APPROVER),
        (account(id="U0GUEST", guest=True), Denial.GUEST),
        (account(id="U0SHY", email=None), Denial.NO_EMAIL),
        (account(id="U0ROBOT", bot=True), Denial.NOT_A_PERSON),
    ],
    ids=["visitor", "guest", "no-email", "robot"],
)
def test_only_approvers_decide(asked: BotLoops, user: object, reason: Denial) -> None:
    who = replace(account(), **{name: getattr(user, name) for name in ("id", "email", "bot", "guest")})
    asked.chat.accounts[who.id] = who
    assert why(asked.click("approve", who.id)) is reason
    assert asked.files() == BEFORE
    assert set(asked.buttons()) == {"approve", "reject"}
    assert asked.metric("denied_clicks_total", reason=reason.value) == 1


def test_a_failed_look_up_of_the_person_denies(asked: BotLoops) -> None:
    asked.chat.faults["account"].append(Limited())
    assert why(asked.click("approve")) is Denial.ACCOUNT_UNREADABLE
    assert asked.files() == BEFORE


def test_a_click_on_an_older_version_of_the_message_decides_nothing(asked: BotLoops) -> None:
    old = asked.offered()
    asked.report(finding(), finding(code="79"))
    assert why(asked.click("approve", value=old)) is Denial.SUPERSEDED
    assert asked.files() == BEFORE


def test_a_lapsed_offer_cannot_be_taken_and_can_be_offered_again(asked: BotLoops) -> None:
    old = asked.offered()
    asked.wait(hours=1)
    assert set(asked.buttons()) == {"renew"}
    assert why(asked.click("approve", value=old)) is Denial.LAPSED
    assert why(asked.click("renew", VISITOR.id)) is Denial.NOT_AN_APPROVER
    assert asked.click("renew") is None
    assert asked.click("approve") is None
    assert asked.files() == AFTER


def test_of_two_clicks_at_once_the_second_is_told_who_was_first(asked: BotLoops) -> None:
    value = asked.offered()

    async def both() -> list[Denied | None]:
        until = asyncio.Event()
        asked.chat.faults["account"].extend((Late(until), Late(until)))
        clicks = [asyncio.create_task(asked.clicks("approve", user, value)) for user in (APPROVER, SECOND.id)]
        await asyncio.sleep(0)
        until.set()
        return await asyncio.gather(*clicks)

    first, second = asked.run(both)
    asked.settle()
    assert (first, why(second)) == (None, Denial.ALREADY_DECIDED)
    assert second is not None
    assert second.by == "Example Approver"
    assert asked.files() == AFTER


def test_a_pod_that_nobody_was_shown_denies_the_click_and_is_shown_then(asked: BotLoops) -> None:
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0"),)
    denied = asked.click("approve")
    assert (why(denied), denied and denied.detail) == (Denial.PLAN_CHANGED, "train/late-0")
    assert asked.files() == BEFORE
    asked.wait(seconds=3)
    assert "late-0" in str(asked.root.message.blocks)
    assert asked.click("approve") is None
    assert len(asked.record()[1].plan.disturbs) == 2


def test_a_pod_of_the_same_name_that_was_created_later_denies_the_click(asked: BotLoops) -> None:
    again = replace(running_pod(), uid="uid-of-another")
    asked.cluster.pods_by_node["gpu-01"] = (again,)
    assert why(asked.click("approve")) is Denial.PLAN_CHANGED


def test_a_node_that_rebooted_since_denies_the_click(asked: BotLoops) -> None:
    asked.reboot()
    denied = asked.click("approve")
    assert (why(denied), denied and denied.detail) == (Denial.NODE_CHANGED, NEW_BOOT)


def test_findings_that_are_gone_deny_the_click(asked: BotLoops) -> None:
    asked.report()
    assert why(asked.click("approve")) is Denial.FINDINGS_CHANGED
    assert asked.files() == BEFORE


def test_a_report_that_is_too_old_denies_the_click(asked: BotLoops) -> None:
    value = asked.offered()
    asked.now += timedelta(seconds=90)
    assert asked.run(lambda: asked.clicks("approve", VISITOR.id, value)) == Denied(
        Denial.NOT_AN_APPROVER, detail="visitor@example.com"
    )
    asked.now += timedelta(seconds=1)
    assert why(asked.run(lambda: asked.clicks("approve", APPROVER, value))) is Denial.FINDINGS_CHANGED


def test_kubernetes_that_cannot_be_read_denies_the_click(asked: BotLoops) -> None:
    asked.cluster.down = True
    assert why(asked.click("approve")) is Denial.NODE_UNREADABLE
    assert asked.files() == BEFORE


def test_an_approver_who_was_just_taken_off_the_list_is_not_recorded(asked: BotLoops) -> None:
    asked.git.config = config((OTHER.name, OTHER.email))
    assert asked.click("approve") is None
    assert asked.files() == BEFORE
    assert any("not an approver" in text for user, text in asked.chat.private if user == APPROVER)
    asked.wait(seconds=3)
    assert asked.click("approve", SECOND.id) is None
    assert asked.files() == AFTER


def test_while_git_is_down_an_approval_waits_and_says_so(asked: BotLoops) -> None:
    asked.git.readable = asked.git.writable = False
    old = asked.offered()
    assert asked.click("approve") is None
    text = str(asked.root.message.blocks)
    assert "not yet recorded in Git" in text
    assert "Git cannot be written at the moment" in text
    assert why(asked.click("approve", SECOND.id, old)) is Denial.ALREADY_DECIDED
    assert asked.replies == []
    asked.git.readable = asked.git.writable = True
    asked.wait(seconds=5)
    assert asked.files() == AFTER
    assert len(asked.replies) == 1


def test_an_approval_that_waits_for_git_is_dropped_when_other_pods_run_by_then(asked: BotLoops) -> None:
    asked.git.readable = asked.git.writable = False
    assert asked.click("approve") is None
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0"),)
    asked.git.readable = asked.git.writable = True
    asked.wait(seconds=5)
    assert any("Other pods run" in text for user, text in asked.chat.private if user == APPROVER)
    assert asked.files() == BEFORE
    assert asked.incident.state is State.OPEN
    asked.wait(seconds=3)
    assert asked.click("approve") is None
    assert asked.files() == AFTER


def test_a_commit_whose_answer_is_lost_is_one_decision(asked: BotLoops) -> None:
    asked.git.lose_answers = 1
    assert asked.click("approve") is None
    asked.wait(seconds=5)
    assert asked.files() == AFTER
    assert asked.incident.state is State.APPROVED


def test_without_a_configuration_nobody_decides() -> None:
    bot = BotLoops()
    bot.report(finding())
    bot.store.config = None
    assert why(bot.run(lambda: bot.clicks("approve"))) is Denial.NO_ACCESS_LIST
