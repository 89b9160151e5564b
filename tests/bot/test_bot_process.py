"""The bot as a process between a Slack, an API server and a Git repository: what only real processes show.

What the loops decide is tested in `loops/`, in one process and without waiting.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from reconciler.incidents.progress import BlockedPod, DrainFact, JournalEntry, StepState
from reconciler.repair.resource import RepairStatus
from tests.bot.agent import NEXT_BOOT, reboot_required
from tests.bot.harness import BotProcess
from tests.bot.people import APPROVER, CHANNEL, SECOND, STRANGER, buttons

StartBot = Callable[..., BotProcess]


def settled(bot: BotProcess, node: str) -> dict[str, Any]:
    """A reported fault whose thread stands and is noted in Git."""
    bot.post(bot.agents.get(node) or bot.agent(node), reboot_required())
    root = bot.offered(node)
    bot.record(node, "thread.yaml")
    return root


def with_buttons(bot: BotProcess, root: dict[str, Any]) -> int:
    """Index of the first version of a message that could be approved."""
    versions = bot.slack.versions(CHANNEL, root["ts"])
    return next(
        index for index, each in enumerate(versions) if "approve" in buttons({"blocks": each.blocks})
    )  # fmt: skip


# ---- the loop


def test_a_report_becomes_a_thread_and_a_click_becomes_two_records_in_one_commit(bot: BotProcess) -> None:
    root = settled(bot, "gpu-101")
    opened, thread = bot.record("gpu-101", "opened.yaml"), bot.record("gpu-101", "thread.yaml")
    assert (thread["channel"], thread["ts"]) == (CHANNEL, root["ts"])
    bot.click(root, "approve", APPROVER)
    repair, approval = bot.record("gpu-101", "repair-1.yaml"), bot.record("gpu-101", "approval-1.yaml")
    assert repair["evidence"]["nodeUid"] == opened["nodeUid"] == bot.agents["gpu-101"].uid
    assert approval["approver"] == {
        "name": "Example Approver", "email": "approver@example.com", "slack": APPROVER,
    }  # fmt: skip
    head = bot.git("log", "-1", "--format=%an <%ae>|%cn|%B", "--name-only", "incidents")
    assert head.startswith("Example Approver <approver@example.com>|Clusterwright|Approve reboot of gpu-101")
    for line in ("Node: gpu-101", "Action: reboot", "Approved-by: Example Approver <approver@example.com>"):
        assert f"\n{line}\n" in head
    assert head.count(".yaml") == 2
    assert "Approved by Example Approver" in bot.reply(root, "Approved by")
    assert buttons(bot.root("gpu-101", "This is recorded in Git")) == set()


def test_a_rejection_needs_a_reason_and_is_recorded_with_it(bot: BotProcess) -> None:
    root = settled(bot, "gpu-103")
    bot.click(root, "reject", SECOND)
    bot.wait("the modal", lambda: bot.slack.views(SECOND))
    assert bot.slack.submit(SECOND, {"reason": "   "}).errors
    assert bot.slack.submit(SECOND, {"reason": "a job needs two more hours"}).acked
    rejected = bot.record("gpu-103", "rejected-1.yaml")
    assert (rejected["reason"], rejected["person"]["email"]) == (
        "a job needs two more hours",
        "second@example.com",
    )
    root = bot.root("gpu-103", "a job needs two more hours")
    bot.click(root, "renew", APPROVER)
    again = bot.offered("gpu-103")
    bot.click(again, "approve", APPROVER)
    bot.record("gpu-103", "repair-1.yaml")


def test_a_repair_is_followed_from_kubernetes_and_its_outcome_closes_the_incident(bot: BotProcess) -> None:
    root = settled(bot, "gpu-104")
    bot.click(root, "approve", APPROVER)
    record = bot.record("gpu-104", "repair-1.yaml")
    play_repair(bot, record)
    bot.reply(root, "Cordoned")
    bot.reply(root, "PodDisruptionBudget training")
    bot.root("gpu-104", "draining")
    bot.agents["gpu-104"].boot(NEXT_BOOT)
    bot.post(bot.agents["gpu-104"])
    finish_repair(bot, record, "Succeeded")
    closed = bot.record("gpu-104", "closed.yaml")
    assert closed["why"] == "repaired"
    bot.reply(root, f"to {NEXT_BOOT}")
    bot.reply(root, "Closed at")
    assert "Repaired" in bot.root("gpu-104", "Repaired:")["text"]
    assert len(bot.roots("gpu-104")) == 1
    mentions = [each for each in bot.replies(root) if "<@" in each]
    assert len(mentions) == 1
    assert f"<@{APPROVER}>" in mentions[0]


def test_slash_commands_are_answered_to_their_asker_alone(bot: BotProcess) -> None:
    settled(bot, "gpu-109")
    incident = next(iter(bot.records("gpu-109"))).split("/")[0]
    for text, answer in (
        ("", "Commands of /cluster"),
        ("status", "open incident"),
        ("incidents", "gpu-109"),
        (f"incident {incident}", "reboot of the node"),
        ("incident gpu-109-ffffff", "No open incident is called gpu-109-ffffff"),
        ("statsu", "Did you mean /cluster status?"),
    ):
        assert bot.slack.slash(STRANGER, CHANNEL, text).acked
        bot.private_answer(STRANGER, answer)


# ---- awkward moments


def test_after_a_kill_the_buttons_of_the_old_message_still_work(bot: BotProcess) -> None:
    root = settled(bot, "gpu-131")
    looked = len(bot.slack.calls("conversations.replies"))
    bot.restart()
    bot.post(bot.agents["gpu-131"], reboot_required())
    bot.wait("its thread being found", lambda: len(bot.slack.calls("conversations.replies")) > looked)
    bot.click(root, "approve", APPROVER)
    bot.record("gpu-131", "repair-1.yaml")
    assert len(bot.roots("gpu-131")) == 1


def test_while_git_is_down_an_approval_waits_and_says_so(bot: BotProcess) -> None:
    root = settled(bot, "gpu-137")
    with bot.git_down():
        bot.click(root, "approve", APPROVER)
        waiting = bot.root("gpu-137", "not yet recorded in Git")
        assert buttons(waiting) == set()
        bot.root("gpu-137", "Git cannot be written at the moment")
        bot.click(root, "approve", SECOND, version=with_buttons(bot, root))
        bot.private_answer(SECOND, "Example Approver has already decided this")
        assert not [each for each in bot.replies(root) if "Approved by" in each]
    bot.record("gpu-137", "repair-1.yaml")
    bot.reply(root, "Approved by Example Approver")


def test_a_decision_made_in_git_by_others_takes_the_buttons_away(bot: BotProcess) -> None:
    root = settled(bot, "gpu-140")
    bot.click(root, "reject", APPROVER)
    bot.wait("the modal", lambda: bot.slack.views(APPROVER))
    directory = incident_directory(bot, "gpu-140")
    opened = bot.record("gpu-140", "opened.yaml")
    closed = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Closed", "incident": opened["incident"],
        "node": "gpu-140", "why": "resolved", "closedAt": "2026-11-30T09:00:00Z", "by": "Example Operator",
    }  # fmt: skip
    bot.write_record(f"{directory}/closed.yaml", closed, "Close by hand")
    bot.root("gpu-140", "Closed")
    bot.slack.submit(APPROVER, {"reason": "too late"})
    bot.private_answer(APPROVER, "no longer open")


def test_signed_http_requests_decide_and_forged_ones_do_not(start_bot: StartBot, tmp_path: Path) -> None:
    secret = tmp_path / "signing-secret"
    secret.write_text("lab-signing-secret-example")
    bot = start_bot(BOT__SLACK__MODE="http", BOT__SLACK__SIGNING_SECRET_FILE=secret)
    http = bot.slack.http
    http.request_url = f"{bot.url}/slack/events"
    root = settled(bot, "gpu-142")
    for tamper in ("wrong_secret", "old_timestamp", "reencoded_body", "unsigned"):
        http.tamper = tamper
        delivery = bot.slack.click(CHANNEL, root["ts"], "approve", APPROVER)
        assert (delivery.acked, delivery.status) == (False, 401), tamper
    http.tamper = None
    assert bot.http.post("/slack/events", data={"ssl_check": "1"}).status_code == 401
    assert "repair-1.yaml" not in bot.files("gpu-142")
    assert bot.slack.url_verification().status == 200
    bot.click(root, "approve", APPROVER)
    bot.record("gpu-142", "repair-1.yaml")


def test_sockets_that_are_cut_frozen_or_replaced_are_opened_again(bot: BotProcess) -> None:
    root = settled(bot, "gpu-145")
    for harm in (bot.slack.kill_sockets, bot.slack.disconnect, bot.slack.freeze_sockets):
        before = bot.slack.connections
        harm()
        assert before == 1
        bot.wait("a living socket", lambda: answers(bot))
    bot.click(root, "approve", STRANGER)
    bot.private_answer(STRANGER, "are not an approver")


def answers(bot: BotProcess) -> bool:
    return bot.slack.connections == 1 and bot.slack.slash(STRANGER, CHANNEL, "help").acked


def test_no_secret_is_ever_logged(bot: BotProcess) -> None:
    root = settled(bot, "gpu-143")
    bot.slack.disconnect()
    bot.click(root, "approve", STRANGER)
    bot.private_answer(STRANGER, "are not an approver")
    agent = bot.agents["gpu-143"]
    for secret in (bot.slack.bot_token, bot.slack.app_token, agent.token, "ticket=", "response_url"):
        assert secret not in bot.log()


# ---- what the reconciler would do


def incident_directory(bot: BotProcess, node: str) -> str:
    paths = bot.git("ls-tree", "-r", "--name-only", "incidents").split()
    return next(path.rsplit("/", 1)[0] for path in paths if f"/{node}-" in path)


def play_repair(bot: BotProcess, record: dict[str, Any]) -> None:
    """A Repair that has cordoned its node and is blocked in the drain."""
    now = datetime.now(UTC)
    cordoned = JournalEntry(
        name="cordon", state=StepState.DONE, started_at=now, finished_at=now, message="cordoned"
    )
    fact = DrainFact(
        pods_left=1, blocked=(BlockedPod(namespace="training", name="x", budgets=("training",)),)
    )
    draining = JournalEntry(name="drain", state=StepState.INTENT, started_at=now, drain=fact)
    status = RepairStatus(
        phase="Running", step="drain", steps=(cordoned, draining), started_at=now,
        message="1 pod left",
    )  # fmt: skip
    node, action = record["evidence"]["node"], record["actionId"]
    path, name = "/apis/clusterwright.dev/v1alpha1/repairs", f"{node}-{action}"
    body = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Repair", "metadata": {"name": name},
        "spec": {"recordPath": "x", "recordCommit": "0" * 40, "record": record},
    }  # fmt: skip
    code, answer = bot.kube.request("POST", path, yaml.safe_load(yaml.safe_dump(body)))
    assert code == 201, answer
    patch = {"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)}
    code, answer = bot.kube.request("PATCH", f"{path}/{name}/status", patch, "application/merge-patch+json")
    assert code == 200, answer


def finish_repair(bot: BotProcess, record: dict[str, Any], phase: str) -> None:
    """The outcome file that the reconciler commits."""
    node, attempt = record["evidence"]["node"], record["attempt"]
    done = datetime.now(UTC).isoformat()
    outcome = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "RepairOutcome", "actionId": record["actionId"],
        "attempt": attempt, "action": "reboot", "incident": record["evidence"]["incident"], "node": node,
        "phase": phase, "reason": "as played", "startedAt": record["approvedAt"], "finishedAt": done,
        "oldBootId": record["evidence"]["bootId"], "newBootId": NEXT_BOOT, "steps": [],
    }  # fmt: skip
    bot.write_record(f"{incident_directory(bot, node)}/outcome-{attempt}.yaml", outcome, f"End {node}")
