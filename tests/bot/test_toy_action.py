"""Adding a repair is one module and one line: a toy action and a toy provider, from the finding to the end.

The bot and the executor are production code, on the embedded API server. Nothing in either names the toys.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bot.incidents.incident import State
from checks.finding import Action
from reconciler.config.schema import Pool, RepairPolicy
from reconciler.incidents.progress import OrderResult, Phase
from reconciler.kube.connection import Connection
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.log import LogOnce
from reconciler.repair.actions.action import ActionWords, RepairAction
from reconciler.repair.actions.registry import ACTIONS
from reconciler.repair.admit import RecordAdmitter
from reconciler.repair.clients import RepairClients
from reconciler.repair.executor import Executor
from reconciler.repair.providers.provider import (
    Capability,
    Machine,
    Order,
    OrderOutcome,
    Power,
    ProviderKind,
    UnknownMachine,
)
from reconciler.repair.providers.registry import PROVIDERS
from reconciler.repair.resource import Repair, read_repair
from reconciler.repair.step import Act, Again, Done, NotDone, Step, StepContext, StepResult, StepWords
from reconciler.repair.steps.cordon import CORDON
from reconciler.source.git_source import Desired, GitRecordSource
from reconciler.source.recording import Commit
from tests.bot.fakes import FakeIncidentLog
from tests.bot.loop_harness import BotLoops
from tests.bot.samples import BOOT, config, finding
from tests.lab.kube.kube import Kube

NODE = "toy-01"
MERGE = "application/merge-patch+json"


@dataclass
class Rack:
    """The toy provider: machines that can be pulled out of it."""

    pulled: list[tuple[str, str]] = field(default_factory=list)

    def observe(self, machine: str, /) -> Machine | UnknownMachine:
        power = Power.OFF if machine in dict(self.pulled) else Power.ON
        return Machine(power, frozenset(Order))

    def act(self, machine: str, action_id: str, _order: Order, /) -> OrderOutcome:
        self.pulled.append((machine, action_id))
        return OrderOutcome(OrderResult.ACCEPTED)

    def outcome(self, _machine: str, _action_id: str, /) -> OrderOutcome:
        return OrderOutcome(OrderResult.UNKNOWN)


def slot(pool: Pool, node: str) -> str | None:
    return f"slot of {node}" if pool.name == "toys" else None


def toy_rack(rack: Rack) -> ProviderKind:
    """The kind of provider that acts on this rack."""
    return ProviderKind("toy-rack", frozenset({Capability.RESTART}), slot, lambda _settings: rack)


def pull(repair: Repair, context: StepContext) -> StepResult:
    machine = f"slot of {repair.node}"

    def order() -> Again | NotDone:
        context.provider.act(machine, repair.action_id, Order.RESTART)
        return Again("waits for the machine to be out", 0)

    seen = context.provider.observe(machine)
    if isinstance(seen, Machine) and seen.power is Power.OFF:
        return Done("the machine is out of the rack")
    return Act("pull the machine", order)


def an_hour(_policy: RepairPolicy) -> timedelta:
    return timedelta(hours=1)


PULL = Step(
    name="pull",
    words=StepWords(
        doing="pulling the machine out of the rack", done="machine pulled out of the rack", news="done"
    ),
    look=pull,
    limit=an_hour,
    destructive=True,
)
TOY_REMOVAL = RepairAction(
    action=Action.REMOVE,
    words=ActionWords(noun="toy removal", order="Take {node} out of the toy rack"),
    plans={1: (CORDON, PULL)},
    capability=Capability.RESTART,
    keeps_local_data=True,
)


@dataclass
class GitRecorder:
    """The reconciler's side of the incident log in memory."""

    git: FakeIncidentLog

    def record(self, event: Commit) -> str:
        return asyncio.run(self.git.record(event))


class Reconciler:
    """Admits records and runs repairs against the API server, as the controller does."""

    def __init__(self, kube: Kube, bot: BotLoops, rack: Rack) -> None:
        self.bot, self.rack = bot, rack
        connection = Connection(kube.admin_kubeconfig, 10)
        reader, writer = KubernetesReader(connection), KubernetesWriter(connection, "clusterwright")
        self.clients = RepairClients(
            reader, writer, bot.reports, GitRecorder(bot.git), lambda _kind: rack, "clusterwright"
        )  # fmt: skip

    def run(self) -> Repair:
        """Admit the one open record and run its repair to the end."""
        desired, now = self._desired(), self.bot.now
        records = GitRecordSource(desired, timedelta(days=1))
        created, refused = RecordAdmitter(self.clients, LogOnce()).admit(desired, records, set(), now)
        assert (created, refused) == (True, ())
        for _ in range(20):
            repair = self._repair()
            executor = Executor(repair, self._context(), self.clients.recorder)
            if executor.advance().after is None:
                return self._repair()
        raise AssertionError(repair.status)

    def _repair(self) -> Repair:
        (raw,) = [each for each in self.clients.reader.repairs() if each["metadata"]["name"].startswith(NODE)]
        repair = read_repair(raw)
        assert isinstance(repair, Repair)
        return repair

    def _desired(self) -> Desired:
        files = {path: text.encode() for path, text in self.bot.git.files.items()}
        return Desired(self.bot.git.config, "c" * 40, "c" * 40, frozenset(files), files, self.bot.now)

    def _context(self) -> StepContext:
        config_now = self.bot.git.config
        assert config_now is not None
        return StepContext(
            reader=self.clients.reader, writer=self.clients.writer, reports=self.clients.reports,
            records=GitRecordSource(self._desired(), timedelta(days=1)), kind=toy_rack(self.rack),
            provider=self.rack, config=config_now, namespace=self.clients.namespace,
            stale_after=timedelta(seconds=90), now=self.bot.now, clock=lambda: self.bot.now,
        )  # fmt: skip


@pytest.fixture
def bot(cluster_api: Kube) -> Iterator[BotLoops]:
    """A bot over the embedded API server with one node, in a pool that the toy provider serves."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"pool": "toys"}}}
    status, made = cluster_api.request("POST", "/api/v1/nodes", node)
    assert status == 201, made
    ready = {"nodeInfo": {"bootID": BOOT}, "conditions": [{"type": "Ready", "status": "True"}]}
    cluster_api.request("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": ready}, MERGE)
    reader = KubernetesReader.connect(cluster_api.kubeconfig_for("clusterwright-bot"), 10)
    toys = Pool.model_validate({"name": "toys", "nodeSelector": {"pool": "toys"}})
    yield BotLoops(git=FakeIncidentLog(replace(config(), pools=(toys,))), api_server=reader)
    cluster_api.request("DELETE", f"/api/v1/nodes/{NODE}")


def test_an_action_that_is_only_registered_goes_the_whole_way(
    bot: BotLoops, cluster_api: Kube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ACTIONS, Action.REMOVE, TOY_REMOVAL)
    rack = Rack()
    monkeypatch.setitem(PROVIDERS, "toy-rack", toy_rack(rack))
    fault = finding(code="64", action=Action.REMOVE, summary="no spare row is left")

    bot.report(fault, name=NODE)
    shown = str(bot.root.message.blocks)
    assert "*Recommended: toy removal.*" in shown
    assert f"Take {NODE} out of the toy rack?" in shown
    assert "Approve toy removal" in shown

    assert bot.click("approve") is None
    _, record = bot.record()
    plan = record.plan
    assert (plan.action, plan.provider, plan.steps) == (Action.REMOVE, "toy-rack", ("cordon", "pull"))
    assert "toy removal of toy-01" in bot.replies[0]

    repair = Reconciler(cluster_api, bot, rack).run()
    assert repair.status.phase is Phase.SUCCEEDED, repair.status.message
    assert rack.pulled == [(f"slot of {NODE}", record.action_id)]
    assert [each.destructive for each in repair.status.steps] == [False, True]
    live = cluster_api.request("GET", f"/api/v1/nodes/{NODE}")[1]
    assert not live["spec"].get("unschedulable")

    bot.report(name=NODE)
    assert bot.files() == [
        "approval-1.yaml", "closed.yaml", "opened.yaml", "outcome-1.yaml", "repair-1.yaml", "thread.yaml",
    ]  # fmt: skip
    assert any(text.startswith("Machine pulled out of the rack at") for text in bot.replies)
    assert bot.replies[-1].startswith("Closed at")
    assert bot.root.message.text.startswith("\N{WHITE HEAVY CHECK MARK} Repaired")
    assert bot.store.by_id == {}


def test_an_action_that_is_not_registered_is_not_offered(bot: BotLoops) -> None:
    bot.report(finding(code="64", action=Action.REMOVE), name=NODE)
    assert bot.incident.state is State.OPEN
    assert bot.buttons() == {}
    assert "This version cannot remove a node." in str(bot.root.message.blocks)
