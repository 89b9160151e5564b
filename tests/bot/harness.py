"""A bot as a real process between an emulated Slack, an embedded API server and a bare Git repository.

The tests play the agents (reports with real bound tokens), the people (clicks) and the reconciler (Repair
objects and outcome files), so that each awkward moment can be chosen.
"""

import contextlib
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

from checks.finding import Finding
from checks.report import encode
from tests.bot.agent import POOL_LABELS, Agent
from tests.bot.people import CHANNEL, buttons, shown
from tests.lab.kube.kube import Kube
from tests.lab.ports import free_ports
from tests.lab.program import Program
from tests.lab.slack.emulator import Slack

WAIT_SECONDS = 60.0

Found = TypeVar("Found")


class BotProcess:
    """One bot with a Slack and a Git of its own; Kubernetes is shared, so node names are unique."""

    def __init__(self, kube: Kube, slack: Slack, workdir: Path, **settings: object) -> None:
        self.kube, self.slack, self.workdir = kube, slack, workdir
        self.bare = workdir / "cluster.git"
        self.url = f"http://127.0.0.1:{free_ports()[0]}"
        self._seed()
        self.program = Program("bot", self._environment(settings), workdir / "bot.log")
        self.http = httpx.Client(base_url=self.url, timeout=5, trust_env=False)
        self.agents: dict[str, Agent] = {}
        self._answers_before: dict[str, int] = {}

    # -- life

    def start(self) -> None:
        """Start the bot and wait until it answers."""
        self.program.start()
        self.wait("the bot's endpoint", self._answers)

    def begin(self) -> None:
        """Start a test: everything is up, and what people were told before does not count."""
        self.slack.start()
        self.slack.faults.clear()
        if not self.program.running:
            self.start()
        self._answers_before = {user: len(self.slack.ephemerals(user)) for user in self.slack.workspace.users}

    def end(self) -> None:
        """Take the test's nodes away, which closes their incidents."""
        for name in self.agents:
            self.kube.request("DELETE", f"/api/v1/namespaces/clusterwright/pods/agent-{name}")
            self.kube.request("DELETE", f"/api/v1/nodes/{name}")
        self.agents = {}

    def close(self) -> None:
        """Stop the bot cleanly."""
        self.end()
        self.http.close()
        self.program.stop()

    def restart(self) -> None:
        """Kill the bot as a power cut would, and start it again."""
        self.program.kill()
        self.start()

    def wait(self, what: str, found: Callable[[], Found], seconds: float = WAIT_SECONDS) -> Found:
        """Return the first truthy answer of `found`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            answer = found()
            if answer:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"{what} did not come within {seconds:g} s\n{self.log()[-4000:]}")

    def log(self) -> str:
        """Everything that the bot has logged."""
        return (self.workdir / "bot.log").read_text()

    # -- agents

    def agent(self, name: str) -> Agent:
        """Register a node."""
        self.agents[name] = Agent(self.kube, name)
        return self.agents[name]

    def post(self, agent: Agent, *findings: Finding, token: str | None = None, **how: Any) -> httpx.Response:
        """Send a report of the agent."""
        headers = {"Authorization": f"Bearer {agent.token if token is None else token}"}
        return self.http.post("/v1/reports", content=encode(agent.report(*findings, **how)), headers=headers)

    # -- people

    def roots(self, node: str) -> list[dict[str, Any]]:
        """Root messages about a node, oldest first."""
        return [each for each in self.slack.messages(CHANNEL) if f"{node}." in each["text"] + "."]

    def root(self, node: str, containing: str = "") -> dict[str, Any]:
        """Wait for the one root message about a node, and for a text in it."""
        return (
            self.wait(
                f"a message about {node} with {containing!r}",
                lambda: next((each for each in self.roots(node) if containing in shown(each)), None),
            )
            or {}
        )

    def offered(self, node: str) -> dict[str, Any]:
        """Wait until a repair of the node can be approved."""
        return (
            self.wait(
                f"an offer for {node}",
                lambda: next((each for each in self.roots(node) if "approve" in buttons(each)), None),
            )
            or {}
        )

    def click(self, message: Mapping[str, Any], action: str, user: str, **how: Any) -> None:
        """DecisionRequest, once the app is there to hear it, and have it acknowledged."""
        self.wait("the app's connection", lambda: self.slack.connections or self.slack.http.request_url)
        delivery = self.slack.click(CHANNEL, message["ts"], action, user, **how)
        assert delivery.acked, delivery.why

    def private_answer(self, user: str, containing: str) -> str:
        """Wait for an answer that only this user sees."""
        return self.wait(
            f"an answer to {user} with {containing!r}",
            lambda: next((text for text in self.private_texts(user) if containing in text), ""),
        )

    def private_texts(self, user: str) -> list[str]:
        """Return the texts that only this user saw since the test began."""
        return [each["text"] for each in self.slack.ephemerals(user)[self._answers_before.get(user, 0) :]]

    def replies(self, message: Mapping[str, Any]) -> list[str]:
        """Texts of a thread's replies."""
        return [each["text"] for each in self.slack.replies(CHANNEL, message["ts"])]

    def reply(self, message: Mapping[str, Any], containing: str) -> str:
        """Wait for a reply with a text."""
        return self.wait(
            f"a reply with {containing!r}",
            lambda: next((each for each in self.replies(message) if containing in each), ""),
        )

    # -- Git

    def git(self, *argv: str) -> str:
        """Return the output of git in the bare repository."""
        command = ["git", f"--git-dir={self.bare}", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout

    def records(self, node: str) -> dict[str, dict[str, Any]]:
        """Every record of the node's incidents by `<incident>/<file>`."""
        try:
            paths = self.git("ls-tree", "-r", "--name-only", "incidents").split()
        except subprocess.CalledProcessError:
            return {}
        ours = [path for path in paths if path.split("/")[3].startswith(f"{node}-")]
        return {
            "/".join(path.split("/")[3:]): yaml.safe_load(self.git("show", f"incidents:{path}"))
            for path in ours
        }

    def record(self, node: str, file: str) -> dict[str, Any]:
        """Wait for a record of the node."""
        return self.wait(
            f"{file} of {node}",
            lambda: next(
                (text for name, text in self.records(node).items() if name.endswith(f"/{file}")), {}
            ),
        )

    def files(self, node: str) -> list[str]:
        """Names of the node's records."""
        return sorted(name.split("/")[1] for name in self.records(node))

    @contextlib.contextmanager
    def git_down(self):  # type: ignore[no-untyped-def]
        """The Git host is away."""
        away = self.bare.with_suffix(".away")
        self.bare.rename(away)
        try:
            yield
        finally:
            away.rename(self.bare)

    def write_record(
        self, path: str, content: Mapping[str, Any], subject: str, branch: str = "incidents"
    ) -> None:
        """Commit a file as somebody else: the reconciler, or a person by pull request."""
        work = self.workdir / "work"
        run = ["git", "-c", "user.name=Example", "-c", "user.email=example@example.com"]
        subprocess.run([*run, "clone", "-q", "-b", branch, str(self.bare), str(work)], check=True, timeout=20)
        file = work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(dict(content), sort_keys=False))
        for argv in (["add", "."], ["commit", "-q", "-m", subject], ["push", "-q"]):
            subprocess.run([*run, "-C", str(work), *argv], check=True, timeout=20)
        subprocess.run(["rm", "-rf", str(work)], check=True, timeout=20)

    # -- set-up

    def _answers(self) -> bool:
        try:
            return self.http.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    def _seed(self) -> None:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.bare)], check=True, timeout=20)
        work = self.workdir / "seed"
        work.mkdir()
        for name, text in configuration().items():
            (work / name).write_text(text)
        run = ["git", "-C", str(work), "-c", "user.name=Example", "-c", "user.email=example@example.com"]
        for argv in (
            ["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Describe the cluster"],
            ["push", "-q", str(self.bare), "main"],
        ):  # fmt: skip
            subprocess.run([*run, *argv], check=True, timeout=20)

    def _environment(self, settings: Mapping[str, object]) -> dict[str, str]:
        token, app_token = self.workdir / "bot-token", self.workdir / "app-token"
        token.write_text(self.slack.bot_token)
        app_token.write_text(self.slack.app_token)
        plain: dict[str, object] = {
            "CLUSTER": "lab",
            "GIT__URL": str(self.bare),
            "GIT__MIRROR": self.workdir / "mirror",
            "GIT__BACKEND": "git",
            "GIT__POLL_SECONDS": 0.5,
            "KUBERNETES__KUBECONFIG": self.kube.kubeconfig_for("clusterwright-bot"),
            "KUBERNETES__TIMEOUT_SECONDS": 3,
            "BOT__LISTEN": self.url.removeprefix("http://"),
            "BOT__REPORT_INTERVAL_SECONDS": 10,
            "BOT__CLEAR_AFTER_SECONDS": 1,
            "BOT__SWEEP_SECONDS": 0.2,
            "BOT__REPAIR_POLL_SECONDS": 0.2,
            "BOT__NODES_POLL_SECONDS": 0.5,
            "BOT__OFFER_REFRESH_SECONDS": 0.5,
            "BOT__RECORD_RETRY_SECONDS": 0.3,
            "BOT__EDIT_SECONDS": 0.2,
            "BOT__SLACK__BASE_URL": self.slack.base_url,
            "BOT__SLACK__CHANNEL": CHANNEL,
            "BOT__SLACK__BOT_TOKEN_FILE": token,
            "BOT__SLACK__APP_TOKEN_FILE": app_token,
            **settings,
        }
        return {f"CLUSTERWRIGHT_{key}": str(value) for key, value in plain.items()}


def configuration() -> dict[str, str]:
    """The cluster's files on branch main."""
    pool = {
        "name": "h100",
        "nodeSelector": POOL_LABELS,
        "gpusPerNode": 8,
        "redfish": {"system": "http://127.0.0.1:9/redfish/v1/Systems/{node}"},
    }
    approvers = [
        {"name": "Example Approver", "email": "approver@example.com"},
        {"name": "Second Approver", "email": "second@example.com"},
    ]
    return {
        "cluster.yaml": _object("Cluster", {"pools": [pool]}),
        "access.yaml": _object("Access", {"approvers": approvers}),
    }


def _object(kind: str, spec: dict[str, Any]) -> str:
    head = {"apiVersion": "clusterwright.dev/v1alpha1", "kind": kind, "metadata": {"name": "lab"}}
    return yaml.safe_dump({**head, "spec": spec}, sort_keys=False)
