"""Every word that the bot says in a thread: snapshots of each moment, and no text that breaks a limit."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.command import UnknownCommand
from bot.incidents.approve import Denial, Denied
from bot.incidents.incident import Closure, Incident, State
from bot.incidents.recommend import recommend
from bot.incidents.status import ClusterStatus, worst_first
from bot.incidents.view import IncidentView
from bot.messages import answer
from bot.messages.blocks import Message, validate
from bot.messages.reply import replies
from bot.messages.root import root
from checks.finding import Action, Severity
from reconciler.incidents.progress import BlockedPod, DrainFact, Phase
from reconciler.incidents.records import Cause, CloseReason
from reconciler.repair.providers.provider import ProviderKind
from reconciler.repair.providers.redfish import KIND
from tests.bot.samples import (
    BOOT,
    HOSTILE,
    NOW,
    decision,
    finding,
    in_state,
    incident,
    offer,
    outcome,
    pod,
    progress,
)

Snapshot = Callable[[object], None]

BUSY = offer(
    pod("worker-0", "pdb:training"),
    pod("worker-1", "bare", "emptyDir"),
    *(pod(f"sidecar-{number:02d}", gpus=0) for number in range(14)),
)
BUDGET = "3 pods left: train/worker-0 is blocked by PodDisruptionBudget training (Cannot evict pod)"


BLOCKED = DrainFact(
    pods_left=3,
    blocked=(
        BlockedPod(namespace="train", name="worker-0", budgets=("training",), reason="Cannot evict pod"),
        BlockedPod(namespace="train", name="unblocked-job-0", reason="too many requests"),
    ),
)


def view(about: Incident, kind: ProviderKind | None = KIND, trouble: str = "") -> IncidentView:
    return IncidentView(about, recommend(about.cause, about.findings, kind), trouble)


def as_json(message: Message) -> dict[str, Any]:
    return {"text": message.text, "blocks": list(message.blocks)}


REBOOTED = replace(
    in_state(State.CLOSED), decision=decision(), outcomes=(outcome(),),
    ending=Closure(CloseReason.REPAIRED, NOW + timedelta(minutes=15)),
)  # fmt: skip

HELD = outcome(
    Phase.HELD, reason="cannot tell what was done", held_by="operations", new_boot_id="", kept=("cordon",)
)

ROOTS = {
    "waiting": incident(),
    "many-pods-and-findings": incident(
        offer=BUSY,
        findings=(
            finding(count=12),
            *(finding(code=str(code), gpu=None) for code in range(200, 208)),
        ),
        companions=(finding(code="45", severity=Severity.INFO, action=Action.NONE, gpu="0000:5d:00.0"),),
    ),
    "nothing-runs-there": incident(offer=offer()),
    "failover": incident(findings=(finding(code="79", action=Action.FAILOVER, summary="fell off the bus"),)),
    "reset-gpu": incident(findings=(finding(code="48", action=Action.RESET_GPU, summary="DBE"),)),
    "reprovision": incident(
        cause=Cause.STORAGE, offer=None,
        findings=(finding(
            subsystem="ext4", check="ext4", code="ext4-remount-ro", action=Action.REPROVISION, gpu=None,
            device="nvme0n1p2", summary="the file system was remounted read-only",
        ),),
    ),
    "not-understood": incident(
        offer=None,
        findings=(finding(code="999", action=Action.ASK, severity=Severity.UNKNOWN, summary="unknown code"),),
    ),
    "silent": incident(
        cause=Cause.AGENT, offer=None,
        findings=(finding(
            check="silence", subsystem="agent", code="silence", action=Action.ASK, severity=Severity.WARNING,
            gpu=None, summary="the agent has stopped reporting", evidence="no report since 03:10:00 UTC",
        ),),
    ),
    "clearing": incident(clear_since=NOW + timedelta(minutes=4)),
    "lapsed": in_state(State.LAPSED),
    "deciding": in_state(State.DECIDING),
    "approved": in_state(State.APPROVED),
    "draining": replace(
        in_state(State.REPAIRING), decision=decision(), offer=BUSY, progress=progress("drain", BUDGET, BLOCKED)
    ),
    "returning": replace(
        in_state(State.REPAIRING), decision=decision(), progress=progress("return", "waits"),
    ),
    "declined": in_state(State.DECLINED),
    "held": replace(
        in_state(State.HELD), decision=decision(), attempt=2, outcomes=(HELD,),
    ),
    "offered-again": replace(
        incident(), decision=decision(), attempt=2,
        outcomes=(outcome(Phase.FAILED, reason="2 orders to restart the machine had no effect", new_boot_id=""),),
    ),
    "repaired": REBOOTED,
    "cleared": incident(state=State.CLOSED, ending=Closure(CloseReason.CLEARED, NOW + timedelta(minutes=9))),
    "cleared-after-a-failed-repair": incident(
        state=State.CLOSED, ending=Closure(CloseReason.CLEARED, NOW + timedelta(minutes=40)), decision=decision(),
        outcomes=(outcome(Phase.FAILED, reason="drained too slowly", new_boot_id="", kept=("cordon",)),),
    ),
    "node-gone": incident(state=State.CLOSED, ending=Closure(CloseReason.NODE_GONE, NOW + timedelta(hours=3))),
    "resolved": incident(
        state=State.CLOSED, ending=Closure(CloseReason.RESOLVED, NOW + timedelta(hours=30), "Example Approver")
    ),
    "closed-in-git": incident(state=State.CLOSED, ending=Closure(CloseReason.RECORDED, NOW + timedelta(minutes=9))),
}  # fmt: skip


STANDS: list[CloseReason] = [CloseReason.CLEARED, CloseReason.RESOLVED, CloseReason.RECORDED]


@pytest.mark.parametrize("why", STANDS)
@pytest.mark.parametrize("kept", [(), ("cordon",)])
def test_a_closed_incident_says_what_its_repair_left_on_the_node(
    why: CloseReason, kept: tuple[str, ...]
) -> None:
    held = outcome(Phase.HELD, reason="drained too slowly", new_boot_id="", kept=kept)
    closed = incident(state=State.CLOSED, ending=Closure(why, NOW, "Example Approver"), outcomes=(held,))
    text = str(as_json(root(view(closed))))
    assert ("kubectl uncordon" in text) == bool(kept)
    assert ("removed its own cordon" in text) != bool(kept)


@pytest.mark.parametrize("name", ROOTS)
def test_root(name: str, snapshot: Snapshot) -> None:
    message = root(view(ROOTS[name]))
    assert validate(message) == []
    snapshot(as_json(message))


def test_root_of_a_node_without_a_provider(snapshot: Snapshot) -> None:
    message = root(view(incident(offer=None), kind=None))
    assert validate(message) == []
    snapshot(as_json(message))


def test_root_names_the_boards_that_are_known_and_never_more_than_fit() -> None:
    message = root(view(incident(boards=(("0000:1b:00.0", "1653923026510"),))))
    assert validate(message) == []
    assert "GPU 0000:1b:00.0 is board 1653923026510" in str(message.blocks)
    many = tuple((f"0000:{number:02x}:00.0", "".join(HOSTILE) * 40) for number in range(64))
    assert validate(root(view(incident(boards=many)))) == []


def test_root_while_git_is_away(snapshot: Snapshot) -> None:
    trouble = "Git cannot be written at the moment, so this is not recorded yet. The bot keeps trying."
    message = root(view(in_state(State.DECIDING), trouble=trouble))
    assert validate(message) == []
    snapshot(as_json(message))


@pytest.mark.parametrize("name", ROOTS)
def test_thread(name: str, snapshot: Snapshot) -> None:
    found = replies(ROOTS[name])
    assert all(validate(each.message) == [] for each in found)
    assert len({each.key for each in found}) == len(found)
    snapshot({each.key: as_json(each.message)["text"] for each in found})


def test_denials(snapshot: Snapshot) -> None:
    found = {why: answer.denied(Denied(why, "Second Approver", NOW, "visitor@example.com")) for why in Denial}
    assert [why for why, message in found.items() if validate(message)] == []
    snapshot({why.value: message.text for why, message in found.items()})


def test_denied_without_details() -> None:
    for why in Denial:
        assert validate(answer.denied(Denied(why))) == []


STATUSES = {
    "well": ClusterStatus("example", 16, 16, 16, ()),
    "ill": ClusterStatus(
        "example",
        16,
        15,
        14,
        worst_first((ROOTS["silent"], incident(), ROOTS["draining"])),
        ("slack: timed out",),
    ),
    "blind": ClusterStatus("example", None, None, 3, (), ("kubernetes: timed out",)),
}


@pytest.mark.parametrize("name", STATUSES)
def test_status(name: str, snapshot: Snapshot) -> None:
    message = answer.status(STATUSES[name])
    assert validate(message) == []
    snapshot(as_json(message))


def test_answers(snapshot: Snapshot) -> None:
    messages = {
        "incidents": answer.incidents(worst_first((incident(), ROOTS["lapsed"]))),
        "incident": answer.incident(ROOTS["draining"]),
        "no such": answer.no_such_incident("gpu-99-000000", (incident(),)),
        "no such, none open": answer.no_such_incident("gpu-99-000000", ()),
        "help": answer.help_text(),
        "meant": answer.mistake(UnknownCommand("statsu", meant="status")),
        "missing": answer.mistake(UnknownCommand("incident", missing="an incident's id")),
        "unknown": answer.mistake(UnknownCommand("reboot")),
        "failed": answer.failed(),
    }
    assert all(validate(each) == [] for each in messages.values())
    snapshot({name: as_json(each) for name, each in messages.items()})


def test_modal(snapshot: Snapshot) -> None:
    snapshot(answer.rejection_modal("gpu-01-a1b2c3", "gpu-01-a1b2c3 4 0123456789abcdef"))


def test_a_long_list_of_incidents_is_cut_within_the_limits() -> None:
    many = tuple(
        incident(id=f"gpu-{number:03d}-a1b2c3", findings=(finding(summary="<" * 900),))
        for number in range(90)
    )
    for message in (answer.incidents(many), answer.status(ClusterStatus("example", 90, 90, 90, many))):
        assert validate(message) == []
        assert "and 70 more" in str(message.blocks)


def test_only_an_account_of_slack_is_ever_mentioned() -> None:
    person = decision().person.model_copy(update={"slack": "U1> <!channel"})
    (reply,) = [
        each for each in replies(replace(REBOOTED, decision=decision(person=person))) if "outcome" in each.key
    ]
    assert "<!" not in reply.message.text.replace("<!date", "")
    assert BOOT in reply.message.text


def test_a_pod_whose_name_says_blocked_is_not_reported_as_blocked() -> None:
    waits = progress("drain", "1 pod left: train/unblocked-job-0 is blocked", DrainFact(pods_left=1))
    about = replace(in_state(State.REPAIRING), decision=decision(), progress=waits)
    assert [each.key for each in replies(about) if each.key.startswith("blocked")] == []
