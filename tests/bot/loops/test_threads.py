"""The threads in Slack: one per incident, whatever is lost, late, refused or deleted, and however often it starts."""

from datetime import timedelta

from bot.incidents.incident import State
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import CloseReason, IncidentClosed
from tests.bot.fakes import Limited, LostAfter, LostBefore, Refused
from tests.bot.loop_harness import BotLoops, node, running_pod
from tests.bot.samples import NEW_BOOT, NOW, finding


def test_after_a_restart_the_old_buttons_still_work(asked: BotLoops) -> None:
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0"),)
    asked.wait(seconds=10)
    value, shown = asked.offered(), asked.incident.revision
    asked.restart()
    asked.report(finding())
    assert asked.incident.revision == shown
    assert len(asked.roots) == 1
    assert asked.click("approve", value=value) is None
    assert "repair-1.yaml" in asked.files()


def test_after_a_restart_no_revision_is_used_for_two_offers(asked: BotLoops) -> None:
    asked.cluster.pods_by_node["gpu-01"] += (running_pod("late-0"),)
    asked.wait(seconds=10)
    shown = asked.incident.revision
    asked.restart()
    asked.cluster.pods_by_node["gpu-01"] = (running_pod("other-0"),)
    asked.report(finding())
    assert asked.incident.revision > shown
    asked.wait(seconds=3)
    assert asked.click("approve") is None


def test_a_thread_that_git_does_not_know_is_found_again_after_a_restart(bot: BotLoops) -> None:
    bot.settle()
    bot.git.readable = bot.git.writable = False
    bot.report(finding())
    assert (len(bot.roots), bot.files()) == (1, [])
    bot.restart()
    bot.git.readable = bot.git.writable = True
    bot.report(finding())
    assert len(bot.roots) == 1
    assert bot.files() == ["opened.yaml", "thread.yaml"]
    assert bot.root.ts in str(bot.git.files)


def test_a_post_whose_answer_is_lost_is_found_and_not_sent_again(bot: BotLoops) -> None:
    bot.chat.faults["post"].append(LostAfter())
    bot.report(finding())
    bot.wait(seconds=1)
    assert len(bot.roots) == 1
    bot.chat.faults["post"].append(LostAfter())
    bot.click("approve")
    bot.wait(seconds=1)
    assert len([text for text in bot.replies if "Approved by" in text]) == 1
    assert len(bot.roots) == 1


def test_a_post_that_never_arrived_is_sent_again(bot: BotLoops) -> None:
    bot.chat.faults["post"].extend([LostBefore(), Limited()])
    bot.report(finding())
    bot.wait(seconds=2)
    assert len(bot.roots) == 1


def test_while_slack_is_down_incidents_are_recorded_and_posted_once_later(bot: BotLoops) -> None:
    bot.chat.down = True
    bot.report(finding())
    assert bot.files() == ["opened.yaml"]
    assert "slack" in bot.store.trouble
    bot.chat.down = False
    bot.wait(seconds=2)
    assert bot.files() == ["opened.yaml", "thread.yaml"]
    assert len(bot.roots) == 1
    assert "slack" not in bot.store.trouble


def test_a_deleted_thread_is_posted_once_more_and_not_twice(asked: BotLoops) -> None:
    asked.root.deleted = True
    asked.report(finding(), finding(code="79"))
    asked.wait(seconds=3)
    assert "1 more finding below" in str(asked.root.message.blocks)
    asked.root.deleted = True
    asked.report(finding())
    asked.wait(seconds=3)
    assert asked.roots == []
    assert asked.open_incident.thread.lost


def test_an_incident_whose_thread_is_refused_goes_on_in_git(bot: BotLoops) -> None:
    bot.chat.faults["post"].append(Refused("invalid_blocks"))
    bot.report(finding())
    assert (bot.roots, bot.files()) == ([], ["opened.yaml"])
    bot.report()
    bot.wait(minutes=1)
    for _ in range(5):
        bot.wait(minutes=1)
    assert bot.files() == ["closed.yaml", "opened.yaml"]
    assert bot.store.by_id == {}


def test_a_closed_incident_stays_until_git_has_its_end(asked: BotLoops) -> None:
    asked.report()
    asked.git.writable = False
    for _ in range(6):
        asked.wait(minutes=1)
    assert asked.incident.state is State.CLOSED
    assert "Cleared by itself" in asked.root.message.text
    asked.git.writable = True
    asked.wait(seconds=5)
    assert "closed.yaml" in asked.files()
    assert asked.store.by_id == {}


def test_a_closed_incident_stays_until_the_thread_says_so(asked: BotLoops) -> None:
    asked.report()
    asked.chat.down = True
    for _ in range(6):
        asked.wait(minutes=1)
    assert "closed.yaml" in asked.files()
    assert asked.incident.state is State.CLOSED
    asked.chat.down = False
    asked.wait(seconds=2)
    assert "Cleared by itself" in asked.root.message.text
    assert asked.store.by_id == {}


def test_a_closed_incident_stays_until_its_last_edit(asked: BotLoops) -> None:
    asked.report()
    asked.git.writable = False
    for _ in range(5):
        asked.wait(minutes=1)
    assert "Git cannot be written" in str(asked.root.message.blocks)
    asked.git.writable = True
    asked.wait(seconds=1)
    assert asked.incident.state is State.CLOSED
    asked.wait(seconds=3)
    assert "Git cannot be written" not in str(asked.root.message.blocks)
    assert asked.store.by_id == {}


def test_an_incident_that_was_closed_in_git_loses_its_buttons(asked: BotLoops) -> None:
    value, about, root = asked.offered(), asked.incident, asked.root
    ending = IncidentClosed(incident=about.id, node="gpu-01", why=CloseReason.RESOLVED, closed_at=NOW)
    asked.write(f"{about.path}/opened.yaml", "closed.yaml", ending)
    assert asked.buttons(root) == {}
    denied = asked.click("approve", value=value)
    assert denied is not None
    assert denied.why.value == "unknown-incident"


def test_after_an_approval_a_restart_neither_asks_nor_posts_again(asked: BotLoops) -> None:
    asked.click("approve")
    before = list(asked.replies)
    asked.restart()
    asked.report(finding())
    assert (asked.replies, asked.buttons(), len(asked.roots)) == (before, {}, 1)
    asked.reboot()
    asked.report(boot_id=NEW_BOOT)
    asked.finish(Phase.SUCCEEDED)
    assert len(asked.replies) == len(set(asked.replies))
    assert asked.files() == [
        "approval-1.yaml", "closed.yaml", "opened.yaml", "outcome-1.yaml", "repair-1.yaml", "thread.yaml",
    ]  # fmt: skip


def test_an_approval_that_git_never_got_is_gone_after_a_restart(asked: BotLoops) -> None:
    asked.git.readable = asked.git.writable = False
    assert asked.click("approve") is None
    asked.restart()
    asked.git.readable = asked.git.writable = True
    asked.report(finding())
    asked.wait(seconds=3)
    assert asked.click("approve", "U0SECOND") is None
    assert asked.record()[1].approvals == ("approval-1.yaml",)
    assert "second@example.com" in str(asked.git.files)


def test_many_threads_are_posted_one_after_the_other_and_none_is_lost(bot: BotLoops) -> None:
    names = [f"gpu-{number:02d}" for number in range(1, 15)]
    bot.cluster.nodes_by_name = {name: node(name, f"uid-{name}") for name in names}
    bot.settle()
    for name in names:
        bot.report(finding(), name=name)
    assert len(bot.roots) == 3
    for _ in range(len(names)):
        bot.now += timedelta(seconds=1.1)
        bot.settle()
    assert len(bot.roots) == len(names)
    assert bot.chat.calls.count("post") == len(names)


def test_news_alone_edits_a_root_at_most_every_three_seconds(asked: BotLoops) -> None:
    versions = len(asked.root.versions)
    for count in (2, 4, 8):
        asked.report(finding(count=count))
    assert len(asked.root.versions) == versions
    asked.wait(seconds=3)
    assert len(asked.root.versions) == versions + 1
