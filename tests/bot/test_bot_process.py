"""The bot as a process between agents, people and Git: the loop, the refusals, and awkward moments."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from checks.finding import Action, Severity
from checks.report import AUDIENCE
from reconciler.incidents.progress import JournalEntry, StepState
from reconciler.repair.resource import RepairStatus
from tests.bot.harness import (
    APPROVER,
    CHANNEL,
    GUEST,
    NEXT_BOOT,
    ROBOT,
    SECOND,
    SHY,
    STRANGER,
    Stage,
    buttons,
    configuration,
    gpu_lost,
    reboot_required,
    shown,
)
from tests.lab.pods import run_bare, run_job

MakeStage = Callable[..., Stage]


def settled(stage: Stage, node: str) -> dict[str, Any]:
    """A reported fault whose thread stands and is noted in Git."""
    stage.post(stage.agents.get(node) or stage.agent(node), reboot_required())
    root = stage.offered(node)
    stage.record(node, "thread.yaml")
    return root


def with_buttons(stage: Stage, root: dict[str, Any]) -> int:
    """Index of the first version of a message that could be approved."""
    versions = stage.slack.versions(CHANNEL, root["ts"])
    return next(
        index for index, each in enumerate(versions) if "approve" in buttons({"blocks": each.blocks})
    )  # fmt: skip


# ---- the loop


def test_a_report_becomes_a_thread_and_a_click_becomes_two_records_in_one_commit(stage: Stage) -> None:
    root = settled(stage, "gpu-101")
    opened, thread = stage.record("gpu-101", "opened.yaml"), stage.record("gpu-101", "thread.yaml")
    assert (thread["channel"], thread["ts"]) == (CHANNEL, root["ts"])
    stage.click(root, "approve", APPROVER)
    repair, approval = stage.record("gpu-101", "repair-1.yaml"), stage.record("gpu-101", "approval-1.yaml")
    assert repair["evidence"]["nodeUid"] == opened["nodeUid"] == stage.agents["gpu-101"].uid
    assert approval["approver"] == {
        "name": "Example Approver", "email": "approver@example.com", "slack": APPROVER,
    }  # fmt: skip
    head = stage.git("log", "-1", "--format=%an <%ae>|%cn|%B", "--name-only", "incidents")
    assert head.startswith("Example Approver <approver@example.com>|Clusterwright|Approve reboot of gpu-101")
    for line in ("Node: gpu-101", "Action: reboot", "Approved-by: Example Approver <approver@example.com>"):
        assert f"\n{line}\n" in head
    assert head.count(".yaml") == 2
    assert "Approved by Example Approver" in stage.reply(root, "Approved by")
    assert buttons(stage.root("gpu-101", "Recorded")) == set()


def test_the_message_names_what_a_reboot_disturbs_and_follows_the_pods(stage: Stage) -> None:
    agent = stage.agent("gpu-102")
    run_job(stage.kube, "gpu-102", "train-102", gpus=4, empty_dir=True)
    run_bare(stage.kube, "gpu-102", "notebook-102")
    stage.post(agent, reboot_required())
    text = shown(stage.offered("gpu-102"))
    assert "stops 2 pods holding 4 GPUs" in text
    assert "train-102-0" in text
    assert "loses its emptyDir data" in text
    assert "bare pod, nothing starts it again" in text
    run_job(stage.kube, "gpu-102", "late-102", gpus=2)
    stage.root("gpu-102", "stops 3 pods holding 6 GPUs")


def test_a_rejection_needs_a_reason_and_is_recorded_with_it(stage: Stage) -> None:
    root = settled(stage, "gpu-103")
    stage.click(root, "reject", SECOND)
    stage.wait("the modal", lambda: stage.slack.views(SECOND))
    assert stage.slack.submit(SECOND, {"reason": "   "}).errors
    assert stage.slack.submit(SECOND, {"reason": "a job needs two more hours"}).acked
    rejected = stage.record("gpu-103", "rejected-1.yaml")
    assert (rejected["reason"], rejected["person"]["email"]) == (
        "a job needs two more hours",
        "second@example.com",
    )
    root = stage.root("gpu-103", "a job needs two more hours")
    stage.click(root, "renew", APPROVER)
    again = stage.offered("gpu-103")
    stage.click(again, "approve", APPROVER)
    stage.record("gpu-103", "repair-1.yaml")


def test_a_repair_is_followed_from_kubernetes_and_its_outcome_closes_the_incident(stage: Stage) -> None:
    root = settled(stage, "gpu-104")
    stage.click(root, "approve", APPROVER)
    record = stage.record("gpu-104", "repair-1.yaml")
    play_repair(stage, record)
    stage.reply(root, "Cordoned")
    stage.reply(root, "disruption budget training")
    stage.root("gpu-104", "draining")
    stage.agents["gpu-104"].boot(NEXT_BOOT)
    stage.post(stage.agents["gpu-104"])
    finish_repair(stage, record, "Succeeded")
    closed = stage.record("gpu-104", "closed.yaml")
    assert closed["why"] == "repaired"
    stage.reply(root, f"is now {NEXT_BOOT}")
    stage.reply(root, "Closed at")
    assert "Repaired" in stage.root("gpu-104", "Repaired:")["text"]
    assert len(stage.roots("gpu-104")) == 1
    mentions = [each for each in stage.replies(root) if "<@" in each]
    assert len(mentions) == 1
    assert f"<@{APPROVER}>" in mentions[0]


def test_a_failed_repair_is_offered_again_as_the_next_attempt(stage: Stage) -> None:
    root = settled(stage, "gpu-105")
    stage.click(root, "approve", APPROVER)
    finish_repair(stage, stage.record("gpu-105", "repair-1.yaml"), "Failed")
    stage.root("gpu-105", "The repair failed")
    stage.click(stage.offered("gpu-105"), "approve", SECOND)
    second = stage.record("gpu-105", "repair-2.yaml")
    assert (second["attempt"], second["approvals"]) == (2, ["approval-2.yaml"])
    assert second["actionId"] != stage.record("gpu-105", "repair-1.yaml")["actionId"]


def test_findings_that_clear_close_the_incident_and_nothing_was_approved(stage: Stage) -> None:
    settled(stage, "gpu-106")
    stage.post(stage.agents["gpu-106"])
    assert stage.record("gpu-106", "closed.yaml")["why"] == "cleared"
    stage.root("gpu-106", "Cleared by itself")


def test_what_cannot_be_repaired_here_gets_a_thread_without_an_approve_button(stage: Stage) -> None:
    unknown = reboot_required()
    odd = type(unknown)(
        check="xid", subsystem="xid", code="999", severity=Severity.UNKNOWN, action=Action.ASK,
        first_seen=1.0, last_seen=1.0, summary="unknown code 999", evidence="NVRM: Xid ...: 999, <!channel>",
    )  # fmt: skip
    stage.post(stage.agent("gpu-107"), odd)
    root = stage.root("gpu-107", "Nothing to approve")
    assert buttons(root) == set()
    stage.post(stage.agent("gpu-108"), gpu_lost())
    root = stage.offered("gpu-108")
    assert "Called for: fail over to another node. Offered instead: reboot" in shown(root)
    assert "may not help" in shown(root)


def test_slash_commands_are_answered_to_their_asker_alone(stage: Stage) -> None:
    settled(stage, "gpu-109")
    incident = next(iter(stage.records("gpu-109"))).split("/")[0]
    for text, answer in (
        ("", "What /cluster answers"),
        ("status", "open incident"),
        ("incidents", "gpu-109"),
        (f"incident {incident}", "reboot of the node"),
        ("incident gpu-109-ffffff", "No open incident is called gpu-109-ffffff"),
        ("statsu", "Did you mean /cluster status?"),
    ):
        assert stage.slack.slash(STRANGER, CHANNEL, text).acked
        stage.told(STRANGER, answer)


# ---- refusals: visible, and without a trace in Git


def test_only_approvers_decide_and_everybody_else_is_told_why(stage: Stage) -> None:
    root = settled(stage, "gpu-111")
    before = stage.git("rev-parse", "incidents")
    for user, why in (
        (STRANGER, "are not an approver"),
        (GUEST, "Guests"),
        (SHY, "no e-mail address"),
        (ROBOT, "Only people"),
    ):
        stage.click(root, "approve", user)
        assert "Your click changed nothing." in stage.told(user, why)
    assert stage.git("rev-parse", "incidents") == before
    denied = stage.http.get("/metrics").text
    assert 'clusterwright_bot_denied_clicks_total{reason="not-an-approver"}' in denied
    assert buttons(stage.root("gpu-111")) == {"approve", "reject"}


def test_a_failed_look_up_of_the_person_denies(stage: Stage) -> None:
    root = settled(stage, "gpu-112")
    stage.slack.faults.status("users.info", 503, times=1)
    stage.click(root, "approve", APPROVER)
    stage.told(APPROVER, "could not be checked")
    assert "repair-1.yaml" not in stage.files("gpu-112")


def test_an_old_click_on_a_changed_incident_decides_nothing(stage: Stage) -> None:
    root = settled(stage, "gpu-113")
    stage.post(stage.agents["gpu-113"], reboot_required(), gpu_lost())
    stage.root("gpu-113", "1 more finding below")
    stage.click(root, "approve", APPROVER, version=0)
    stage.told(APPROVER, "older state of the incident")
    assert "repair-1.yaml" not in stage.files("gpu-113")


def test_a_lapsed_offer_cannot_be_taken_and_can_be_had_again(set_stage: MakeStage) -> None:
    stage = set_stage(BOT__OFFER_LIFETIME_SECONDS=3)
    root = settled(stage, "gpu-114")
    lapsed = stage.root("gpu-114", "the offer lapsed")
    assert buttons(lapsed) == {"renew"}
    stage.click(root, "approve", APPROVER, version=with_buttons(stage, root))
    stage.told(APPROVER, "The offer lapsed")
    stage.click(lapsed, "renew", STRANGER)
    stage.told(STRANGER, "are not an approver")
    stage.click(lapsed, "renew", APPROVER)
    stage.click(stage.offered("gpu-114"), "approve", APPROVER)
    stage.record("gpu-114", "repair-1.yaml")


def test_two_clicks_at_once_are_one_decision_and_the_second_person_is_told(stage: Stage) -> None:
    root = settled(stage, "gpu-115")
    stage.slack.faults.slow("users.info", 0.3, times=2)
    stage.click(root, "approve", APPROVER)
    stage.click(root, "approve", SECOND)
    stage.record("gpu-115", "repair-1.yaml")
    told = stage.wait(
        "one of them being told",
        lambda: [
            text for user in (APPROVER, SECOND) for text in stage.whispers(user)
            if "has decided this already" in text
        ],
    )  # fmt: skip
    assert len(told) == 1
    winner = stage.record("gpu-115", "approval-1.yaml")["approver"]["name"]
    assert winner in told[0]
    assert stage.files("gpu-115").count("approval-1.yaml") == 1
    assert "approval-2.yaml" not in stage.files("gpu-115")


def test_a_pod_that_nobody_was_shown_denies_the_click_and_is_shown_then(set_stage: MakeStage) -> None:
    stage = set_stage(BOT__OFFER_REFRESH_SECONDS=3600)
    root = settled(stage, "gpu-116")
    run_job(stage.kube, "gpu-116", "late-116", gpus=8)
    stage.click(root, "approve", APPROVER)
    assert "training/late-116-0" in stage.told(APPROVER, "Other pods run")
    assert "repair-1.yaml" not in stage.files("gpu-116")
    stage.click(stage.root("gpu-116", "late-116-0"), "approve", APPROVER)
    assert stage.record("gpu-116", "repair-1.yaml")["plan"]["disturbs"][0]["name"] == "late-116-0"


def test_a_node_that_rebooted_since_denies_the_click(stage: Stage) -> None:
    root = settled(stage, "gpu-117")
    stage.agents["gpu-117"].boot(NEXT_BOOT)
    stage.click(root, "approve", APPROVER)
    stage.told(APPROVER, "has rebooted since")
    assert "repair-1.yaml" not in stage.files("gpu-117")


def test_findings_that_are_gone_deny_the_click(set_stage: MakeStage) -> None:
    stage = set_stage(BOT__CLEAR_AFTER_SECONDS=60)
    root = settled(stage, "gpu-118")
    stage.post(stage.agents["gpu-118"])
    stage.click(root, "approve", APPROVER)
    stage.told(APPROVER, "findings are not the ones you were shown")
    assert "repair-1.yaml" not in stage.files("gpu-118")


def test_a_node_speaks_for_itself_alone_with_a_fresh_token_of_its_agent(stage: Stage) -> None:
    mine, other = stage.agent("gpu-121"), stage.agent("gpu-122")
    kube = stage.kube

    def status(**how: Any) -> tuple[int, str]:
        answer = stage.post(mine, reboot_required(), **how)
        return answer.status_code, answer.text

    assert status(node="gpu-122")[0] == 403
    assert status(token=other.token)[0] == 403
    assert stage.http.post("/v1/reports", content=b"{}").status_code == 401
    assert status(token="nonsense")[0] == 401
    assert status(token=kube.token("clusterwright", "clusterwright-agent", ("other-audience",)))[0] == 401
    assert status(token=kube.token("clusterwright", "clusterwright-agent", (AUDIENCE,)))[0] == 403
    assert (
        status(token=kube.token("clusterwright", "clusterwright-agent", (AUDIENCE,), seconds=-10))[0] == 401
    )
    assert status(token=kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,)))[0] == 403
    time.sleep(0.5)
    assert stage.records("gpu-121") == stage.records("gpu-122") == {}
    assert stage.roots("gpu-121") == stage.roots("gpu-122") == []


def test_bad_reports_are_answered_with_what_is_wrong(stage: Stage) -> None:
    agent = stage.agent("gpu-123")
    headers = {"Authorization": f"Bearer {agent.token}"}
    bad = stage.http.post("/v1/reports", content=b'{"node": "gpu-123"}', headers=headers)
    assert (bad.status_code, "boot_id" in bad.json()["error"]) == (422, True)
    assert stage.http.post("/v1/reports", content=b"{", headers=headers).status_code == 422
    assert stage.http.post("/v1/reports", content=b" " * (2 << 20), headers=headers).status_code == 413
    assert stage.post(agent, sequence=5).status_code == 202
    assert stage.post(agent, sequence=5).status_code == 202
    assert stage.post(agent, sequence=4).status_code == 409


def test_the_reconciler_alone_is_given_the_newest_report(stage: Stage) -> None:
    agent = stage.agent("gpu-124")
    stage.post(agent, reboot_required())
    token = stage.kube.token("clusterwright", "clusterwright-reconciler", (AUDIENCE,))
    headers = {"Authorization": f"Bearer {token}"}
    held = stage.http.get("/v1/nodes/gpu-124/report", headers=headers).json()
    assert held["report"]["findings"][0]["code"] == "154"
    assert 0 <= held["age_seconds"] < 60
    assert stage.http.get("/v1/nodes/gpu-199/report", headers=headers).status_code == 404
    assert stage.http.get("/v1/nodes/gpu-124/report").status_code == 401
    agents = {"Authorization": f"Bearer {agent.token}"}
    assert stage.http.get("/v1/nodes/gpu-124/report", headers=agents).status_code == 403


def test_an_approver_who_was_just_taken_off_the_list_cannot_decide_any_more(set_stage: MakeStage) -> None:
    stage = set_stage(GIT__POLL_SECONDS=3600)
    root = settled(stage, "gpu-146")
    access = yaml.safe_load(configuration()["access.yaml"])
    access["spec"]["approvers"].pop(0)
    stage.write_record("access.yaml", access, "Take somebody off the list", branch="main")
    stage.click(root, "approve", APPROVER)
    stage.told(APPROVER, "are not an approver")
    assert "repair-1.yaml" not in stage.files("gpu-146")
    stage.click(stage.offered("gpu-146"), "approve", SECOND)
    stage.record("gpu-146", "repair-1.yaml")


# ---- awkward moments


def test_killed_between_post_and_first_click_the_old_buttons_still_work(stage: Stage) -> None:
    root = settled(stage, "gpu-131")
    looked = len(stage.slack.calls("conversations.replies"))
    stage.restart()
    stage.post(stage.agents["gpu-131"], reboot_required())
    stage.wait("its thread being found", lambda: len(stage.slack.calls("conversations.replies")) > looked)
    stage.click(root, "approve", APPROVER)
    stage.record("gpu-131", "repair-1.yaml")
    assert len(stage.roots("gpu-131")) == 1


def test_killed_between_posting_and_noting_the_thread_it_is_found_again(stage: Stage) -> None:
    agent = stage.agent("gpu-132")
    with stage.git_down():
        stage.post(agent, reboot_required())
        stage.offered("gpu-132")
        stage.program.kill()
    stage.start()
    stage.post(agent, reboot_required())
    thread = stage.record("gpu-132", "thread.yaml")
    assert [each["ts"] for each in stage.roots("gpu-132")] == [thread["ts"]]


def test_a_post_whose_reply_is_lost_is_found_and_not_sent_again(stage: Stage) -> None:
    agent = stage.agent("gpu-133")
    stage.slack.faults.reset_after("chat.postMessage", times=1)
    stage.post(agent, reboot_required())
    root = stage.offered("gpu-133")
    assert stage.record("gpu-133", "thread.yaml")["ts"] == root["ts"]
    assert len(stage.roots("gpu-133")) == 1
    stage.slack.faults.reset_after("chat.postMessage", times=1)
    stage.click(stage.offered("gpu-133"), "approve", APPROVER)
    stage.reply(root, "Approved by")
    time.sleep(1.5)
    assert len([each for each in stage.replies(root) if "Approved by" in each]) == 1


def test_killed_after_the_approval_it_goes_on_without_a_second_one(stage: Stage) -> None:
    root = settled(stage, "gpu-134")
    stage.click(root, "approve", APPROVER)
    record = stage.record("gpu-134", "repair-1.yaml")
    stage.restart()
    stage.root("gpu-134", "Recorded")
    finish_repair(stage, record, "Succeeded")
    stage.record("gpu-134", "closed.yaml")
    stage.reply(root, "Closed at")
    texts = stage.replies(root)
    assert len(texts) == len(set(texts))
    assert stage.files("gpu-134") == [
        "approval-1.yaml", "closed.yaml", "opened.yaml", "outcome-1.yaml", "repair-1.yaml", "thread.yaml",
    ]  # fmt: skip


def test_while_slack_is_down_incidents_are_recorded_and_told_once_later(stage: Stage) -> None:
    agents = [stage.agent(name) for name in ("gpu-135", "gpu-136")]
    stage.slack.stop()
    for agent in agents:
        stage.post(agent, reboot_required())
        stage.record(agent.name, "opened.yaml")
    assert stage.http.get("/healthz").json()["status"] == "degraded"
    time.sleep(1)
    stage.slack.start()
    for agent in agents:
        stage.record(agent.name, "thread.yaml")
        assert len(stage.roots(agent.name)) == 1
    order = [each["ts"] for name in ("gpu-135", "gpu-136") for each in stage.roots(name)]
    assert order == sorted(order)


def test_while_git_is_down_an_approval_waits_and_says_so(stage: Stage) -> None:
    root = settled(stage, "gpu-137")
    with stage.git_down():
        stage.click(root, "approve", APPROVER)
        waiting = stage.root("gpu-137", "not yet recorded in Git")
        assert buttons(waiting) == set()
        stage.root("gpu-137", "Git cannot be written just now")
        stage.click(root, "approve", SECOND, version=with_buttons(stage, root))
        stage.told(SECOND, "Example Approver has decided this already")
        assert not [each for each in stage.replies(root) if "Approved by" in each]
    stage.record("gpu-137", "repair-1.yaml")
    stage.reply(root, "Approved by Example Approver")


def test_an_approval_that_waits_for_git_is_dropped_when_the_world_has_changed_meanwhile(stage: Stage) -> None:
    root = settled(stage, "gpu-138")
    with stage.git_down():
        stage.click(root, "approve", APPROVER)
        stage.root("gpu-138", "Git cannot be written just now")
        run_job(stage.kube, "gpu-138", "late-138", gpus=8)
    stage.told(APPROVER, "Other pods run")
    stage.root("gpu-138", "late-138-0")
    assert "repair-1.yaml" not in stage.files("gpu-138")
    stage.click(stage.offered("gpu-138"), "approve", APPROVER)
    stage.record("gpu-138", "repair-1.yaml")


def test_killed_with_an_approval_that_git_never_got_the_buttons_are_there_again(stage: Stage) -> None:
    root = settled(stage, "gpu-139")
    with stage.git_down():
        stage.click(root, "approve", APPROVER)
        stage.root("gpu-139", "Git cannot be written just now")
        stage.program.kill()
    stage.start()
    stage.post(stage.agents["gpu-139"], reboot_required())
    stage.click(stage.offered("gpu-139"), "approve", SECOND)
    assert stage.record("gpu-139", "approval-1.yaml")["approver"]["name"] == "Second Approver"


def test_a_decision_made_in_git_by_others_takes_the_buttons_away(stage: Stage) -> None:
    root = settled(stage, "gpu-140")
    stage.click(root, "reject", APPROVER)
    stage.wait("the modal", lambda: stage.slack.views(APPROVER))
    directory = incident_directory(stage, "gpu-140")
    opened = stage.record("gpu-140", "opened.yaml")
    closed = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Closed", "incident": opened["incident"],
        "node": "gpu-140", "why": "resolved", "closedAt": "2026-11-30T09:00:00Z", "by": "Example Operator",
    }  # fmt: skip
    stage.write_record(f"{directory}/closed.yaml", closed, "Close by hand")
    stage.root("gpu-140", "Closed")
    stage.slack.submit(APPROVER, {"reason": "too late"})
    stage.told(APPROVER, "not open any more")


def test_a_deleted_thread_is_posted_once_more(stage: Stage) -> None:
    root = settled(stage, "gpu-141")
    stage.slack.workspace.remove(stage.slack.workspace.message(stage.slack.channel(CHANNEL), root["ts"]))
    stage.post(stage.agents["gpu-141"], reboot_required(), gpu_lost())
    again = stage.root("gpu-141", "1 more finding below")
    assert again["ts"] != root["ts"]
    assert len(stage.roots("gpu-141")) == 1


def test_it_runs_the_same_by_signed_http_and_forgeries_do_nothing(
    set_stage: MakeStage, tmp_path: Path
) -> None:
    secret = tmp_path / "signing-secret"
    secret.write_text("lab-signing-secret-example")
    stage = set_stage(BOT__SLACK__MODE="http", BOT__SLACK__SIGNING_SECRET_FILE=secret)
    door = stage.slack.http
    door.request_url = f"{stage.url}/slack/events"
    root = settled(stage, "gpu-142")
    for tamper in ("wrong_secret", "old_timestamp", "reencoded_body", "unsigned"):
        door.tamper = tamper
        delivery = stage.slack.click(CHANNEL, root["ts"], "approve", APPROVER)
        assert (delivery.acked, delivery.status) == (False, 401), tamper
    door.tamper = None
    assert stage.http.post("/slack/events", data={"ssl_check": "1"}).status_code == 401
    assert "repair-1.yaml" not in stage.files("gpu-142")
    assert stage.slack.url_verification().status == 200
    stage.click(root, "approve", APPROVER)
    stage.record("gpu-142", "repair-1.yaml")


def test_a_second_click_while_the_first_is_being_judged_waits_for_it(stage: Stage) -> None:
    root = settled(stage, "gpu-144")
    for _ in range(3):
        stage.click(root, "approve", APPROVER, version=with_buttons(stage, root))
    stage.record("gpu-144", "repair-1.yaml")
    stage.told(APPROVER, "has decided this already")
    assert stage.files("gpu-144").count("repair-1.yaml") == 1


def test_sockets_that_are_cut_frozen_or_replaced_are_opened_again(stage: Stage) -> None:
    root = settled(stage, "gpu-145")
    for harm in (stage.slack.kill_sockets, stage.slack.disconnect, stage.slack.freeze_sockets):
        before = stage.slack.connections
        harm()
        assert before == 1
        stage.wait("a living socket", lambda: answers(stage))
    stage.click(root, "approve", STRANGER)
    stage.told(STRANGER, "are not an approver")


def answers(stage: Stage) -> bool:
    return stage.slack.connections == 1 and stage.slack.slash(STRANGER, CHANNEL, "help").acked


def test_many_faults_at_once_keep_within_slacks_limits_and_lose_nothing(set_stage: MakeStage) -> None:
    stage = set_stage()
    stage.slack.api.limits.enforced = True
    names = [f"gpu-{number}" for number in range(151, 165)]
    for name in names:
        stage.post(stage.agent(name), reboot_required())
    for name in names:
        stage.record(name, "thread.yaml")
        assert len(stage.roots(name)) == 1
    assert len(stage.slack.messages(CHANNEL)) == len(names)
    assert len(stage.slack.calls("chat.postMessage")) <= len(names) + 3


def test_no_secret_is_ever_logged(stage: Stage) -> None:
    root = settled(stage, "gpu-143")
    stage.slack.disconnect()
    stage.click(root, "approve", STRANGER)
    stage.told(STRANGER, "are not an approver")
    agent = stage.agents["gpu-143"]
    for secret in (stage.slack.bot_token, stage.slack.app_token, agent.token, "ticket=", "response_url"):
        assert secret not in stage.log()


# ---- what the reconciler would do


def incident_directory(stage: Stage, node: str) -> str:
    paths = stage.git("ls-tree", "-r", "--name-only", "incidents").split()
    return next(path.rsplit("/", 1)[0] for path in paths if f"/{node}-" in path)


def play_repair(stage: Stage, record: dict[str, Any]) -> None:
    """A Repair that has cordoned its node and is blocked in the drain."""
    now = datetime.now(UTC)
    cordoned = JournalEntry(
        name="cordon", state=StepState.DONE, started_at=now, finished_at=now, message="cordoned"
    )
    draining = JournalEntry(name="drain", state=StepState.INTENT, started_at=now)
    status = RepairStatus(
        phase="Running", step="drain", steps=(cordoned, draining), started_at=now,
        message="1 pod left: training/x is blocked by disruption budget training",
    )  # fmt: skip
    node, action = record["evidence"]["node"], record["actionId"]
    path, name = "/apis/clusterwright.dev/v1alpha1/repairs", f"{node}-{action}"
    body = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Repair", "metadata": {"name": name},
        "spec": {"recordPath": "x", "recordCommit": "0" * 40, "record": record},
    }  # fmt: skip
    code, answer = stage.kube.request("POST", path, yaml.safe_load(yaml.safe_dump(body)))
    assert code == 201, answer
    patch = {"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)}
    code, answer = stage.kube.request("PATCH", f"{path}/{name}/status", patch, "application/merge-patch+json")
    assert code == 200, answer


def finish_repair(stage: Stage, record: dict[str, Any], phase: str) -> None:
    """The outcome file that the reconciler commits."""
    node, attempt = record["evidence"]["node"], record["attempt"]
    done = datetime.now(UTC).isoformat()
    outcome = {
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "RepairOutcome", "actionId": record["actionId"],
        "attempt": attempt, "action": "reboot", "incident": record["evidence"]["incident"], "node": node,
        "phase": phase, "reason": "as played", "startedAt": record["approvedAt"], "finishedAt": done,
        "oldBootId": record["evidence"]["bootId"], "newBootId": NEXT_BOOT, "steps": [],
    }  # fmt: skip
    stage.write_record(f"{incident_directory(stage, node)}/outcome-{attempt}.yaml", outcome, f"End {node}")
