"""Values that the bot's tests are made of. Everything has a default; a test names only what it is about."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.incidents.approve import Account, DecisionRequest, NodeObservation
from bot.incidents.incident import Decision, Incident, Offer, State
from checks.finding import Action, Finding, Severity
from reconciler.config.schema import Approver as Listed
from reconciler.config.schema import Config, Pool, RedfishAddress, RepairPolicy
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.progress import DrainFact, JournalEntry, Phase, StepState
from reconciler.incidents.records import Cause, Decider, RepairOutcome
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.actions.registry import make_plan
from reconciler.repair.resource import RepairStatus

NOW = datetime(2026, 11, 30, 3, 12, 45, tzinfo=UTC)
BOOT = "11111111-1111-4111-8111-111111111111"
NEW_BOOT = "22222222-2222-4222-8222-222222222222"
GPU = "0000:1b:00.0"
PERSON = Decider(name="Example Approver", email="approver@example.com", slack="U0APPROVER")
OTHER = Decider(name="Second Approver", email="second@example.com", slack="U0SECOND")

STEPS = REBOOT.plans[REBOOT.version]

HOSTILE = (
    "<!channel>",
    "&lt;!here&gt;",
    "<@U0APPROVER>",
    "<http://example.com|click>",
    "\u202egnp.exe",
    "x" * 5_000,
    "```\nfence\n```",
    "nul\x00 bell\x07",
    "*bold* _it_ ~no~ `code`",
    "\ud800 lone",
    "",
    "\n\n\n",
    '"quoted" \\back\\slash',
)
"""Texts that try to be more than text."""


def finding(**fields: Any) -> Finding:
    """A critical Xid 154 that asks for a reboot."""
    base: dict[str, Any] = {
        "check": "xid", "subsystem": "xid", "code": "154", "severity": Severity.CRITICAL,
        "action": Action.REBOOT, "gpu": GPU, "first_seen": 1_796_008_350.0, "last_seen": 1_796_008_350.0,
        "summary": "the driver asks for a reboot of the node",
        "evidence": "NVRM: Xid (PCI:0000:1b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 "
        "(Node Reboot Required)",
    }  # fmt: skip
    return Finding(**{**base, **fields})


def pod(name: str = "worker-0", *risks: str, gpus: int = 8, namespace: str = "train") -> PlannedPod:
    """A pod that a repair would stop; its name makes its UID."""
    controller = None if "bare" in risks else "Job/train"
    return PlannedPod(
        namespace=namespace, name=name, uid=f"uid-{name}", controller=controller, gpus=gpus, risks=risks
    )


def offer(*pods: PlannedPod, minutes: int = 60, at: datetime = NOW) -> Offer:
    """An offer of a reboot."""
    made = make_plan(REBOOT, "redfish", pods)
    return Offer(plan=made, offered_at=at, expires_at=at + timedelta(minutes=minutes))


def incident(**fields: Any) -> Incident:
    """An open GPU incident on gpu-01 with a reboot on offer that stops one pod."""
    base: dict[str, Any] = {
        "id": "gpu-01-a1b2c3", "cluster": "example", "node": "gpu-01", "node_uid": "uid-01",
        "cause": Cause.GPU, "opened_boot_id": BOOT, "boot_id": BOOT, "opened_at": NOW, "offer_from": NOW,
        "findings": (finding(),), "offer": offer(pod()),
    }  # fmt: skip
    return Incident(**{**base, **fields})


def decision(**fields: Any) -> Decision:
    """An approval by the example approver, two minutes later."""
    at = NOW + timedelta(minutes=2)
    base: dict[str, Any] = {
        "attempt": 1, "approves": True, "person": PERSON, "at": at,
        "expires_at": at + timedelta(minutes=60), "via": "slack",
        "evidence_digest": incident().evidence_digest,
    }  # fmt: skip
    return Decision(**{**base, **fields})


def outcome(phase: Phase = Phase.SUCCEEDED, **fields: Any) -> RepairOutcome:
    """How attempt 1 ended, eleven minutes after it began."""
    base: dict[str, Any] = {
        "action_id": "0123456789ab", "attempt": 1, "action": Action.REBOOT, "incident": "gpu-01-a1b2c3",
        "node": "gpu-01", "phase": phase, "reason": "node is ready with 8 of 8 GPUs",
        "started_at": NOW + timedelta(minutes=3), "finished_at": NOW + timedelta(minutes=14, seconds=5),
        "old_boot_id": BOOT, "new_boot_id": NEW_BOOT, "steps": progress("uncordon").steps,
    }  # fmt: skip
    return RepairOutcome(**{**base, **fields})


def progress(step: str, message: str = "", drain: DrainFact | None = None) -> RepairStatus:
    """A running repair at `step`; all steps before it are done."""
    names = tuple(each.name for each in STEPS)
    entries = [
        JournalEntry(
            name=name, state=StepState.DONE, started_at=NOW + timedelta(minutes=3 + index),
            finished_at=NOW + timedelta(minutes=3 + index, seconds=30), message=f"{name} went well",
            destructive=STEPS[index].destructive,
        )
        for index, name in enumerate(names[: names.index(step)])
    ]  # fmt: skip
    begun = JournalEntry(
        name=step, state=StepState.INTENT, started_at=NOW + timedelta(minutes=20), drain=drain,
        destructive=STEPS[names.index(step)].destructive,
    )  # fmt: skip
    return RepairStatus(
        phase=Phase.RUNNING,
        step=step,
        message=message,
        steps=(*entries, begun),
        started_at=NOW + timedelta(minutes=3),
    )


def config(*people: tuple[str, str]) -> Config:
    """A cluster with one pool and two approvers."""
    listed = people or ((PERSON.name, PERSON.email), (OTHER.name, OTHER.email))
    pool = Pool.model_validate({
        "name": "h100", "nodeSelector": {"pool": "h100"},
        "redfish": {"system": "https://{node}.bmc.example.com/redfish/v1/Systems/1"},
    })  # fmt: skip
    assert isinstance(pool.redfish, RedfishAddress)
    approvers = tuple(Listed.model_validate({"name": name, "email": email}) for name, email in listed)
    return Config("example", (pool,), approvers, RepairPolicy())


def account(**fields: Any) -> Account:
    """The example approver's account."""
    base: dict[str, Any] = {"id": "U0APPROVER", "name": "Example Approver", "email": "approver@example.com"}
    return Account(**{**base, **fields})


def request(about: Incident, **fields: Any) -> DecisionRequest:
    """A click on the buttons of `about` as they are now."""
    base: dict[str, Any] = {
        "user": "U0APPROVER", "account": account(), "incident": about.id,
        "revision": about.revision, "offer_digest": about.offer_digest,
    }  # fmt: skip
    return DecisionRequest(**{**base, **fields})


def observation(**fields: Any) -> NodeObservation:
    """The node as the incident shows it."""
    base: dict[str, Any] = {"node_uid": "uid-01", "boot_id": BOOT, "fresh": True}
    return NodeObservation(**{**base, **fields})


def in_state(state: State) -> Incident:
    """An incident in that state, with what it then has."""
    base = incident(state=state)
    match state:
        case State.DECIDING | State.APPROVED:
            return replace(base, decision=decision())
        case State.DECLINED:
            return replace(base, decision=decision(approves=False, reason="a job needs two more hours"))
        case _:
            return base
