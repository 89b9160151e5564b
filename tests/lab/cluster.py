"""A whole cluster on this machine, in one call: API server, nodes, BMCs, Git host, Slack, our programs.

    with Cluster(Path("/tmp/lab"), nodes=4) as cluster:
        cluster.node("gpu-01").write_kernel("NVRM: Xid (PCI:0000:1b:00): 154, ...")

Everything is real or emulated at the wire, binds to 127.0.0.1 and is gone when the block ends. The programs
run as they would in a cluster: settings in the environment, ServiceAccount tokens in files, rights by RBAC.
"""

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import httpx
import yaml

from tests.lab.bmc import Bmc
from tests.lab.github.server import GitHub
from tests.lab.kube.connection import UnreliableConnection
from tests.lab.kube.server import start
from tests.lab.manifests import apply_identities
from tests.lab.node import Node
from tests.lab.noderoot import gpu_address
from tests.lab.ports import free_ports
from tests.lab.program import Program
from tests.lab.slack.emulator import Slack
from tests.lab.wiring import CHANNEL, PEOPLE, Timing, bot_settings, configuration, reconciler_settings

REBOOT_REQUIRED = (
    "NVRM: Xid (PCI:{gpu}): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
)
"""A fault whose first answer is a reboot (node-check table 3.3)."""

STARTED_SECONDS = 60.0
PATIENCE_SECONDS = 60.0
"""What takes a moment on an idle machine, and much longer where several clusters share two cores."""

UNRELIABLE: Mapping[str, Any] = {"seed": 7, "slowest_seconds": 0.1, "cut_one_in": 40}
"""Some hundreds of pieces of data go over the connection in one repair."""

WAIT_STEP_SECONDS = 0.1

Found = TypeVar("Found")


class Cluster:
    """The lab. `nodes` are named gpu-01, gpu-02, …, each with `gpus` GPUs, all in one pool."""

    def __init__(
        self,
        workdir: Path,
        *,
        nodes: int = 4,
        gpus: int = 8,
        kubernetes: Literal["real", "embedded"] = "embedded",
        slack_mode: Literal["socket", "http"] = "socket",
        recorder: Literal["github", "git"] = "github",
        timing: Timing | None = None,
        unreliable: bool = False,
        slack_port: int = 0,
    ) -> None:
        self.workdir = workdir
        self.timing = timing or Timing()
        self.slack_mode, self.recorder, self.gpus = slack_mode, recorder, gpus
        self._backend = kubernetes
        self._names = [f"gpu-{index:02d}" for index in range(1, nodes + 1)]
        self._stack = ExitStack()
        self._slack_port, self._unreliable = slack_port, unreliable
        self.bot_url = f"http://127.0.0.1:{free_ports()[0]}"
        self.nodes: dict[str, Node] = {}
        self._records: tuple[str, dict[str, Mapping[str, Any]]] = "", {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def break_gpu(self, name: str, line: str = REBOOT_REQUIRED) -> None:
        """Write the kernel line of a fault of the node's first GPU."""
        self.nodes[name].write_kernel(line.format(gpu=gpu_address(0).removesuffix(".0")))

    def wait(self, what: str, found: Callable[[], Found | None], seconds: float = PATIENCE_SECONDS) -> Found:
        """Return the first truthy answer of `found`; raises AssertionError naming `what` after `seconds`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = found()
            if answer:
                return answer
            time.sleep(WAIT_STEP_SECONDS)
        raise AssertionError(f"{what} did not come within {seconds:g} s; logs are in {self.workdir}")

    # ---- what people see

    def thread(self, node: str) -> Mapping[str, Any] | None:
        """Return the newest root message about `node` in the incident channel."""
        found = [each for each in self.slack.messages(CHANNEL) if node in each.get("text", "")]
        return found[-1] if found else None

    def buttons(self, message: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return the message's buttons by action id."""
        return {
            element["action_id"]: element
            for block in message.get("blocks") or ()
            if block["type"] == "actions"
            for element in block["elements"]
        }

    # ---- what Git says

    def git(self, *argv: str) -> str:
        """Return the output of git in the host's bare repository."""
        command = ["git", f"--git-dir={self.github.bare}", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout

    def records(self) -> dict[str, Mapping[str, Any]]:
        """Return every file of the branch `incidents`: path → content."""
        try:
            # Not by git: tests ask many times a second, and every answer would cost a process.
            commit = (self.github.bare / "refs/heads/incidents").read_text().strip()
        except FileNotFoundError:
            return {}
        if self._records[0] != commit:
            names = self.git("ls-tree", "-r", "--name-only", commit).split()
            read = {name: yaml.safe_load(self.git("show", f"{commit}:{name}")) for name in names}
            self._records = commit, read
        return dict(self._records[1])

    def record(self, node: str, file: str) -> Mapping[str, Any] | None:
        """Return the newest record called `file` of an incident of `node`."""
        found = [
            text for name, text in self.records().items() if f"/{node}-" in name and name.endswith(f"/{file}")
        ]
        return found[-1] if found else None

    # ---- what Kubernetes says

    def repair(self, node: str) -> Mapping[str, Any] | None:
        """Return the newest Repair of `node`."""
        items = self.kube.request("GET", "/apis/clusterwright.dev/v1alpha1/repairs")[1].get("items", [])
        found = [each for each in items if each["spec"]["record"]["evidence"]["node"] == node]
        return max(found, key=lambda each: each["metadata"]["creationTimestamp"], default=None)

    def step(self, node: str) -> str:
        """Return the step that the node's newest repair is at, empty when there is none."""
        return ((self.repair(node) or {}).get("status") or {}).get("step", "")

    def kubernetes_node(self, name: str) -> Mapping[str, Any]:
        return self.kube.request("GET", f"/api/v1/nodes/{name}")[1]

    # ---- start

    def _start(self) -> None:
        self.workdir.mkdir(parents=True, exist_ok=True)
        self.kube = start(self._backend, self.workdir / "kube")
        self._stack.callback(self.kube.stop)
        apply_identities(self.kube)
        self.kube.watch_nodes(self.timing.node_grace_seconds)
        if self._unreliable:
            self._break_connection()
        self.github = self._running(GitHub(self.workdir / "github"))
        self.slack = self._running(Slack(port=self._slack_port))
        self._settle_people()
        self.bmc = self._running(Bmc(self.workdir / "bmc", self._names, delays=self.timing.machines))
        self.github.seed(configuration(self), branch="main")
        self._start_programs()
        self._start_nodes()

    def _break_connection(self) -> None:
        """Put an unreliable connection between our programs and Kubernetes."""
        url = httpx.URL(self.kube.url)
        connection = UnreliableConnection(url.port or 0, **UNRELIABLE)
        self.connection = self._running(connection)
        self.kube.client_url = str(url.copy_with(port=connection.port))

    def _running(self, part: Any) -> Any:
        part.start()
        self._stack.callback(part.stop)
        return part

    def _settle_people(self) -> None:
        for user, (name, email) in PEOPLE.items():
            self.slack.add_user(user, name, email)
        self.slack.add_channel(CHANNEL, "gpu-incidents")
        if self.slack_mode == "http":
            self.slack.http.request_url = f"{self.bot_url}/slack/events"

    def _start_programs(self) -> None:
        self.bot = self._program("bot", bot_settings(self))
        self.reconciler = self._program("reconciler", reconciler_settings(self))
        self.wait("the bot's endpoint", self._bot_answers, STARTED_SECONDS)

    def _program(self, package: str, settings: Mapping[str, object]) -> Program:
        environment = {f"CLUSTERWRIGHT_{key}": str(value) for key, value in settings.items()}
        program = Program(package, environment, self.workdir / f"{package}.log")
        program.start()
        self._stack.callback(program.stop)
        return program

    def _bot_answers(self) -> bool:
        try:
            return httpx.get(f"{self.bot_url}/healthz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def _start_nodes(self) -> None:
        settings = {"report_interval_seconds": str(self.timing.report_seconds), "poll_seconds": "0.2"}
        self.bmc.on_power = lambda name, state: self.nodes[name].power(state)
        for index, name in enumerate(self._names):
            node = Node(
                name, self.kube, self.workdir, self.bot_url, index, gpus=self.gpus,
                boot_seconds=self.timing.boot_seconds, agent_settings=settings,
            )  # fmt: skip
            self.nodes[name] = node
            self._running(node)
        for node in self.nodes.values():
            node.wait_ready()
