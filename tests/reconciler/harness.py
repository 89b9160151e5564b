"""One node under repair with everything around it, and a clock that the test moves.

The API server is the lab's embedded one and the bot answers over HTTP; the machine can be told to misbehave,
Git is files, and the clock is stepped. `NodeHarness.run` drives the executor as the loop does.

The world is no kinder than the real one: a machine that restarts has no power for a while, its heartbeat
stops, after 40 s its node is unreachable and tainted, and its last report grows old. Git was last read some
seconds ago, and each call of the outside takes time. How long each takes is drawn from the test's own seed.
"""

import itertools
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import yaml

from checks.finding import Action, Finding, Severity
from checks.report import Gpu, HeldReport, Inventory, NodeReport
from reconciler.config.reader import read
from reconciler.config.schema import Config
from reconciler.incidents.coverage import disturbed
from reconciler.incidents.digests import action_id, evidence_digest
from reconciler.incidents.paths import outcome_path
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.records import Approval, Decider, Evidence, RepairRecord
from reconciler.incidents.value import RecordValue
from reconciler.kube.connection import Connection, Object
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.actions.registry import make_plan
from reconciler.repair.executor import Executor, Pass
from reconciler.repair.providers.redfish import KIND
from reconciler.repair.reports import NodeReports
from reconciler.repair.resource import Repair, RepairSpec, read_repair, repair_name
from reconciler.repair.step import StepContext
from reconciler.source.git_source import Desired, GitRecordSource
from tests.lab.kube.kube import Kube
from tests.reconciler.outside import (
    Bmc,
    BmcClient,
    Bot,
    CrashableConnection,
    CrashPoint,
    FakeIncidentBranch,
    IncidentBranchClient,
)

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
STALE = timedelta(seconds=30)
GPUS = 8
MERGE = "application/merge-patch+json"
GIT_POLL = timedelta(seconds=10)
REPORT_INTERVAL = timedelta(seconds=10)
MONITOR_GRACE = timedelta(seconds=40)
"""Time without a heartbeat until the node-lifecycle controller says that a node is unreachable."""
UNREACHABLE = "node.kubernetes.io/unreachable"
OLD, NEW = "boot-old", "boot-new"
FAULT = Finding(
    check="xid", subsystem="gpu", code="154", severity=Severity.CRITICAL, action=Action.REBOOT,
    gpu="0000:1b:00.0", first_seen=1.0, last_seen=1.0, summary="GPU 1b:00.0 wants the node rebooted",
)  # fmt: skip
CONFIG = b"""apiVersion: clusterwright.dev/v1alpha1
kind: Cluster
metadata: {name: example}
spec:
  pools:
    - name: h100
      nodeSelector: {pool: h100}
      redfish: {system: "http://127.0.0.1:9/redfish/v1/Systems/{node}"}
---
apiVersion: clusterwright.dev/v1alpha1
kind: Access
metadata: {name: example}
spec:
  approvers: [{name: Example Approver, email: approver@example.com}]
---
apiVersion: clusterwright.dev/v1alpha1
kind: RepairPolicy
metadata: {name: example}
spec: {drainTimeout: 60s, gracefulTimeout: 20s, bootTimeout: 60s, verifyTimeout: 60s}
"""

_numbers = itertools.count(1)


def config(text: bytes = CONFIG) -> Config:
    found = read({"cluster.yaml": text})
    assert isinstance(found, Config), str(found)
    return found


def dump(value: RecordValue) -> bytes:
    content = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return yaml.safe_dump(content, sort_keys=False).encode()


class NodeHarness:
    """A node `gpu-N` of its own with a fault, an approved record, and a Repair once `order` was called.

    `seed` decides how long things take. `agent_delay` is the time from a boot to the agent's first report.
    """

    def __init__(self, kube: Kube, bot: Bot, workdir: Path, seed: int = 0) -> None:
        self.kube, self.bot, self.workdir = kube, bot, workdir
        self.node = f"gpu-{next(_numbers):04d}"
        self.now, self.beats = START, 0
        self.random = random.Random(seed)
        self.git_lag = self._seconds(0, GIT_POLL.total_seconds())
        self.agent_delay = self._seconds(2, 15)
        self.boot_id, self.booted_at, self.reported_at = OLD, START, START
        self.down_since: datetime | None = None
        self.tainted = False
        self.bmc = Bmc(
            obey=lambda _order: self.boot(NEW),
            lose_power=self.lose_power,
            clock=lambda: self.now,
            off=self._seconds(5, 70),
        )
        self.incident_branch = FakeIncidentBranch()
        self.git_valid = timedelta(seconds=60)
        self.config = config()
        self.token_file = workdir / "token"
        self.token_file.write_text("example-token")
        self.wire = Connection(kube.admin_kubeconfig, 10)
        self.reports = NodeReports(bot.url, self.token_file, None, 5)
        self.node_uid = self._make_node()
        self.beat()
        self.report(OLD, FAULT)
        self.incident = f"{self.node}-abc123"
        self.directory = f"incidents/2026/11/{self.incident}"
        self.path = f"{self.directory}/repair-1.yaml"
        self.files: dict[str, bytes] = {}

    def _seconds(self, least: float, most: float) -> timedelta:
        return timedelta(seconds=self.random.uniform(least, most))

    # ---- the node

    def _make_node(self) -> str:
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.node, "labels": {"pool": "h100"}},
        }
        status, made = self.kube.request("POST", "/api/v1/nodes", node)
        assert status == 201, made
        self.kube.request("PATCH", f"/api/v1/nodes/{self.node}", {"spec": {"taints": None}}, MERGE)
        self.boot(OLD)
        return str(made["metadata"]["uid"])

    def boot(self, boot_id: str, *, ready: bool = True, gpus: int = GPUS) -> None:
        """Let the kubelet report this boot."""
        self.boot_id, self.booted_at, self.down_since = boot_id, self.now, None
        status = {
            "nodeInfo": {"bootID": boot_id},
            "capacity": {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        }
        self.patch_node({"status": status}, "/status")

    def patch_node(self, patch: Object, subresource: str = "") -> None:
        path = f"/api/v1/nodes/{self.node}{subresource}"
        status, answer = self.kube.request("PATCH", path, patch, MERGE)
        assert status == 200, answer

    def raw_node(self) -> dict[str, Any]:
        return self.kube.request("GET", f"/api/v1/nodes/{self.node}")[1]

    def beat(self) -> None:
        """Let the kubelet renew its lease."""
        self.beats += 1
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        at = (START + timedelta(seconds=self.beats)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"spec": {"renewTime": at, "holderIdentity": self.node}}
        if self.kube.request("PATCH", f"{leases}/{self.node}", spec, MERGE)[0] == 404:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.node}}
            assert self.kube.request("POST", leases, {**body, **spec})[0] == 201

    def report(self, boot_id: str, *findings: Finding, gpus: int | None = GPUS, age: float = 1.0) -> None:
        """Let the bot hold this report of the node."""
        seen = None if gpus is None else tuple(Gpu(address=f"0000:{n:02x}:00.0") for n in range(gpus))
        self.reported_at = self.now - timedelta(seconds=age)
        self.bot.reports[self.node] = HeldReport(
            age_seconds=age,
            report=NodeReport(
                node=self.node, boot_id=boot_id, sequence=1, sent_at=0.0, agent_version="0",
                inventory=Inventory(gpus=seen), findings=findings, blind_spots=(),
            ),
        )  # fmt: skip

    # ---- its pods

    def pod(
        self,
        name: str,
        *,
        owner: str = "Job",
        labels: dict[str, str] | None = None,
        account: str | None = None,
    ) -> str:
        """Bind a pod to the node and return its uid; an empty `owner` makes a bare one."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{self.node}-{name}",
                "labels": labels or {},
                "ownerReferences": self._owner(owner) if owner else [],
            },
            "spec": {
                "nodeName": self.node,
                "containers": [{"name": "c", "image": "example"}],
                **({"serviceAccountName": account} if account else {}),
            },
        }
        status, made = self.kube.request("POST", "/api/v1/namespaces/default/pods", body)
        assert status == 201, made
        path = f"/api/v1/namespaces/default/pods/{self.node}-{name}/status"
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.kube.request("PATCH", path, {"status": ready}, MERGE)
        return str(made["metadata"]["uid"])

    def _owner(self, kind: str) -> list[dict[str, Any]]:
        """Make sure that the owner exists, because the garbage collector of a real cluster asks for it."""
        version, plural = {"Job": ("batch/v1", "jobs"), "DaemonSet": ("apps/v1", "daemonsets")}[kind]
        path = f"/apis/{version}/namespaces/default/{plural}"
        template = {
            "metadata": {"labels": {"owner": "o"}},
            "spec": {"containers": [{"name": "c", "image": "example"}], "restartPolicy": "Never"},
        }
        spec: dict[str, Any] = {"template": template}
        if kind == "DaemonSet":
            template["spec"]["restartPolicy"] = "Always"
            spec["selector"] = {"matchLabels": {"owner": "o"}}
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "o"}, "spec": spec}
        status, made = self.kube.request("POST", path, body)
        if status == 409:
            made = self.kube.request("GET", f"{path}/o")[1]
        uid = made["metadata"]["uid"]
        return [{"apiVersion": version, "kind": kind, "name": "o", "uid": uid, "controller": True}]

    def confirm_gone(self) -> None:
        """Let the kubelet confirm every pod that is being deleted."""
        for each in self.pods():
            if each["metadata"].get("deletionTimestamp"):
                path = f"/api/v1/namespaces/default/pods/{each['metadata']['name']}"
                self.kube.request("DELETE", path, {"gracePeriodSeconds": 0})

    def pods(self) -> list[dict[str, Any]]:
        params = {"fieldSelector": f"spec.nodeName={self.node}"}
        return list(self.kube.request("GET", "/api/v1/pods", params=params)[1]["items"])

    # ---- its life

    def live(self) -> None:
        """Let everything around the repair catch up with the clock."""
        self.bmc.run()
        if self.down_since is None:
            self.beat()
            self.confirm_gone()
            if self.tainted and self.now > self.booted_at:
                # The controller takes its taints off some time after the node is ready again.
                self._taint_unreachable(on=False)
        elif self.now - self.down_since > MONITOR_GRACE and not self.tainted:
            unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
            self.patch_node(unknown, "/status")
            self._taint_unreachable(on=True)
        self._agent()

    def lose_power(self, at: datetime) -> None:
        """Let the node fall silent; its last report is as old as it was then."""
        self.down_since = at
        held = self.bot.reports.get(self.node)
        self.reported_at = at - timedelta(seconds=held.age_seconds if held else 0)

    def _agent(self) -> None:
        held, first = self.bot.reports.get(self.node), self.booted_at + self.agent_delay
        if held is None or (self.boot_id == OLD and self.down_since is None):
            return
        if self.boot_id == NEW and self.down_since is None and self.now >= first:
            self.report(NEW, age=((self.now - first) % REPORT_INTERVAL).total_seconds())
        elif held.report.boot_id == OLD:
            age = (self.now - self.reported_at).total_seconds()
            self.bot.reports[self.node] = msgspec.structs.replace(held, age_seconds=age)

    def _taint_unreachable(self, *, on: bool) -> None:
        """Do as the node-lifecycle controller does; it finds the taints that it left, whatever we did."""
        there = self.raw_node()["spec"].get("taints") or []
        others = [each for each in there if each["key"] != UNREACHABLE]
        assert len(there) - len(others) == (0 if on else 2), there
        added = [
            {"key": UNREACHABLE, "effect": effect, "timeAdded": "2026-11-30T12:00:00Z"}
            for effect in ("NoSchedule", "NoExecute")
        ]
        self.patch_node({"spec": {"taints": [*others, *(added if on else [])]}})
        self.tainted = on

    # ---- the order

    def record(self, *pods: str, **changes: Any) -> RepairRecord:
        """Return a record that orders a reboot and evicts `pods`."""
        reader = self.context().reader
        there = disturbed(reader.pods(self.node), reader.budgets())
        wanted = {f"{self.node}-{pod}" for pod in pods}
        named = tuple(pod for pod in there if pod.name in wanted)
        absent = wanted - {pod.name for pod in named}
        named += tuple(PlannedPod(namespace="default", name=name) for name in sorted(absent))
        ordered = make_plan(REBOOT, "redfish", named)
        evidence = Evidence(
            cluster="example", incident=self.incident, node=self.node, node_uid=self.node_uid, boot_id=OLD,
            findings=(FAULT.key,), evidence_digest=evidence_digest(OLD, [FAULT]), plan_digest=ordered.digest,
        )  # fmt: skip
        identity = action_id("example", self.node_uid, self.incident, 1)
        fields: dict[str, Any] = {
            "action_id": identity, "attempt": 1, "action": Action.REBOOT,
            "evidence": evidence, "plan": ordered,
            "approvals": ("approval-1.yaml",), "approved_at": START, "expires_at": START + timedelta(hours=1),
        }  # fmt: skip
        return RepairRecord(**{**fields, **changes})

    def approval(self, record: RepairRecord, **changes: Any) -> Approval:
        fields: dict[str, Any] = {
            "decision_id": "d1", "action": record.action, "evidence": record.evidence, "via": "slack",
            "approver": Decider(name="Example Approver", email="approver@example.com"),
            "approved_at": record.approved_at, "expires_at": record.expires_at,
        }  # fmt: skip
        return Approval(**{**fields, **changes})

    def put(self, record: RepairRecord, approval: Approval | None = None) -> None:
        """Put the record and its approval into Git."""
        approval = approval or self.approval(record)
        self.files |= {self.path: dump(record), f"{self.directory}/approval-1.yaml": dump(approval)}

    def order(self, *pods: str) -> RepairRecord:
        """Put a record into Git and make the Repair of it, as the intake does."""
        return self.order_record(self.record(*pods))

    def order_record(self, record: RepairRecord) -> RepairRecord:
        """Put this record into Git and make the Repair of it."""
        self.put(record)
        spec = RepairSpec(record_path=self.path, record_commit="c0ffee", record=record)
        body = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.context().writer.create_repair(repair_name(self.node, record.action_id), body)
        return record

    # ---- the program

    def context(self, crash: CrashPoint | None = None, *, moving: bool = False) -> StepContext:
        """Return the context of one pass, at the time that it is now; `moving` lets the pass itself take time."""
        crash = crash or CrashPoint()
        tick = self._tick if moving else lambda: None
        connection = CrashableConnection(self.wire, crash, tick)
        since_read = (self.now - START + self.git_lag) % GIT_POLL
        paths, files = frozenset(self.files), dict(self.files)
        desired = Desired(self.config, "m", "i", paths, files, self.now - since_read)
        if self.git_valid <= timedelta(0):
            desired = replace(desired, read_at=None)
        return StepContext(
            reader=KubernetesReader(connection),
            writer=KubernetesWriter(connection, "clusterwright"),
            reports=self.reports,
            records=GitRecordSource(desired, self.git_valid),
            kind=KIND,
            provider=BmcClient(self.bmc, crash, tick),
            config=self.config,
            namespace="clusterwright",
            stale_after=STALE,
            now=self.now,
            clock=lambda: self.now,
        )

    def _tick(self) -> None:
        self.now += self._seconds(0, 0.1)

    def repair(self) -> Repair:
        identity = action_id("example", self.node_uid, self.incident, 1)
        raw = self.kube.request(
            "GET", f"/apis/clusterwright.dev/v1alpha1/repairs/{repair_name(self.node, identity)}"
        )[1]
        found = read_repair(raw)
        assert isinstance(found, Repair), found
        return found

    def one_pass(self, crash: CrashPoint | None = None) -> Pass:
        """Take the repair one pass further, which takes a moment; nothing else happens meanwhile."""
        crash = crash or CrashPoint()
        recorder = IncidentBranchClient(self.incident_branch, crash)
        return Executor(self.repair(), self.context(crash, moving=True), recorder).advance()

    def settle(self) -> Pass:
        """Take the repair as far as it goes without waiting."""
        for _ in range(60):
            result = self.one_pass()
            if result.after is None or result.after > 0:
                return result
        raise AssertionError(f"the repair does not come to rest: {result}")

    def run(self, seconds: float = 7200.0, crash: CrashPoint | None = None) -> Repair:
        """Run until nothing is left to do, or `seconds` are over.

        Passes come when they ask to, and up to 8 s late while the machine is off: the reconciler is busy.
        """
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            result = self.one_pass(crash)
            if result.after is None:
                return self.repair()
            late = self.random.uniform(1, 8) if self.down_since else 0
            self.pass_time(max(result.after, late))
        return self.repair()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything around the repair with it."""
        self.now += timedelta(seconds=seconds)
        if seconds > 0:
            self.live()

    # ---- what is left

    def marks(self) -> tuple[bool, list[str], str]:
        """Return whether the node is unschedulable, its taints but for the control plane's, the lease's holder."""
        spec = self.raw_node()["spec"]
        lease = self.context().reader.lease("clusterwright", f"clusterwright-repair-{self.node}")
        taints = [each["key"] for each in spec.get("taints") or () if each["key"] != UNREACHABLE]
        return bool(spec.get("unschedulable")), taints, lease.holder if lease else ""

    def outcome(self) -> dict[str, Any]:
        """Return the one outcome that is recorded."""
        path = outcome_path(self.path)
        texts = [event.files[path] for event in self.incident_branch.events if path in event.files]
        assert len(texts) == 1, texts
        return dict(yaml.safe_load(texts[0]))


CLEAN: tuple[bool, list[str], str] = (False, [], "")
