"""The bot between reports, people and Git: one loop, and every awkward moment in it."""

from tests.bot.stage import APPROVER, Stage, buttons, reboot_required, shown


def test_a_report_becomes_a_thread_and_a_click_becomes_two_records_in_one_commit(stage: Stage) -> None:
    agent = stage.agent("gpu-101")
    assert stage.post(agent, reboot_required()).status_code == 202
    root = stage.offered("gpu-101")
    assert "approve" in buttons(root)
    opened = stage.record("gpu-101", "opened.yaml")
    thread = stage.record("gpu-101", "thread.yaml")
    assert thread["ts"] == root["ts"]
    stage.click(root, "approve", APPROVER)
    repair = stage.record("gpu-101", "repair-1.yaml")
    approval = stage.record("gpu-101", "approval-1.yaml")
    assert repair["evidence"]["nodeUid"] == opened["nodeUid"] == agent.uid
    assert approval["approver"]["email"] == "approver@example.com"
    stage.reply(root, "Approved")
    print(shown(stage.roots("gpu-101")[0]))
    print(stage.git("log", "--format=%an <%ae> / %cn%n%B", "incidents"))
    print(stage.log())
