"""Some nodes, a Git repository with a real history, and a reconciler that runs in a thread of its own.

Time is real, moved to the day of the records; a thread plays the kubelets and agents of the nodes.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from reconciler.apply.controller import ConfigController
from reconciler.apply.definitions import PACKAGED, definitions
from reconciler.build import Reconciler, connect_loops
from reconciler.kube.connection import REPAIRS, Connection
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.clients import RepairClients
from reconciler.repair.controller import ControllerIntervals, RepairController
from reconciler.repair.providers.provider import Machine, Order, OrderOutcome, UnknownMachine
from reconciler.repair.reports import NodeReports
from reconciler.settings import GitSettings
from reconciler.source.git_recorder import GitRecorder
from reconciler.source.git_source import Desired, GitSource
from reconciler.source.recording import Person
from reconciler.source.repository import Repository
from tests.lab.kube.kube import Kube
from tests.reconciler.harness import CONFIG, STALE, START, NodeHarness
from tests.reconciler.outside import BmcClient, CrashPoint

INTERVALS = ControllerIntervals(
    each_pass=timedelta(seconds=0.1),
    git_poll=timedelta(seconds=0.1),
    git_valid=timedelta(seconds=5),
    stale_after=STALE,
)


def prepare(kube: Kube) -> Kube:
    """Give an API server our namespaces and definitions, and wait until it serves them."""
    for name in ("clusterwright", "kube-node-lease"):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        assert kube.request("POST", "/api/v1/namespaces", body)[0] in (201, 409)
    writer = KubernetesWriter(Connection(kube.admin_kubeconfig, 10), "clusterwright")
    for crd in definitions(PACKAGED):
        writer.apply_crd(crd)
    until = time.monotonic() + 60
    for path in (REPAIRS, "/api/v1/namespaces/default/serviceaccounts/default"):
        while kube.request("GET", path)[0] != 200:
            assert time.monotonic() < until, path
            time.sleep(0.1)
    return kube


class GitHost:
    """A bare repository, and the ways in which people and the bot change it."""

    def __init__(self, workdir: Path) -> None:
        self.url = str(workdir / "host.git")
        self._tree = workdir / "tree"
        self._run("init", "--quiet", "--bare", "--initial-branch=main", self.url)
        self._run("init", "--quiet", "--initial-branch=main", str(self._tree))

    def commit(self, branch: str, files: Mapping[str, bytes | None]) -> None:
        """Add one commit to a branch; None removes a file."""
        self._start(branch)
        for path, content in files.items():
            file = self._tree / path
            if content is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        self.git("push", "--quiet", self.url, f"HEAD:refs/heads/{branch}")

    def rewrite(self, branch: str) -> None:
        """Replace a branch's history by another one."""
        self.git("checkout", "--quiet", "--orphan", f"other-{branch}")
        self.git("commit", "--quiet", "--allow-empty", "--message=other")
        self.git("push", "--quiet", "--force", self.url, f"HEAD:refs/heads/{branch}")

    def show(self, *argv: str) -> str:
        """Return what git says about the bare repository."""
        return self._run(f"--git-dir={self.url}", *argv)

    def git(self, *argv: str) -> str:
        who = ("-c", "user.name=Example", "-c", "user.email=example@example.com")
        return self._run("-C", str(self._tree), *who, *argv)

    def _start(self, branch: str) -> None:
        there = self.git("ls-remote", self.url, f"refs/heads/{branch}")
        if there:
            self.git("fetch", "--quiet", self.url, branch)
            self.git("checkout", "--quiet", "--force", "-B", branch, "FETCH_HEAD")
        else:
            self.git("checkout", "--quiet", "--orphan", branch)
            self.git("rm", "-r", "--quiet", "--cached", "--ignore-unmatch", ".")

    @staticmethod
    def _run(*argv: str) -> str:
        return subprocess.run(["git", *argv], capture_output=True, text=True, check=True, timeout=30).stdout


@dataclass
class Machines:
    """The BMCs of several nodes behind one provider; a node in `hangs` keeps its caller until it is set."""

    harnesses: Mapping[str, NodeHarness]
    hangs: dict[str, threading.Event]

    def observe(self, machine: str, /) -> Machine | UnknownMachine:
        node = machine.rsplit("/", 1)[-1]
        if node in self.hangs:
            self.hangs[node].wait(30)
        return self._client(machine).observe(machine)

    def act(self, machine: str, action_id: str, order: Order, /) -> OrderOutcome:
        return self._client(machine).act(machine, action_id, order)

    def outcome(self, machine: str, action_id: str, /) -> OrderOutcome:
        return self._client(machine).outcome(machine, action_id)

    def _client(self, machine: str) -> BmcClient:
        return BmcClient(self.harnesses[machine.rsplit("/", 1)[-1]].bmc, CrashPoint())


class InlinePool(Executor):
    """Runs what it is given at once, in the caller's thread."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work(*args, **kwargs))
        return future


class ClusterHarness:
    """Nodes in a pool of their own; `run` starts a reconciler for them.

    `account` is the kubeconfig of the repairs, `applier` that of the configuration.
    """

    def __init__(self, harnesses: list[NodeHarness], workdir: Path) -> None:
        self.harnesses = {harness.node: harness for harness in harnesses}
        self.workdir = workdir
        self.host = GitHost(workdir)
        self.hangs: dict[str, threading.Event] = {}
        self.started = time.monotonic()
        self.looks: list[Desired] = []
        self.account = self.applier = harnesses[0].kube.admin_kubeconfig
        pool = f"pool-{harnesses[0].node}"
        for harness in harnesses:
            harness.bmc.delay = harness.bmc.off = timedelta(seconds=0.5)
            harness.agent_delay = timedelta(seconds=0.3)
            harness.patch_node({"metadata": {"labels": {"pool": pool}}})
        self.config = CONFIG.replace(b"pool: h100", b"pool: " + pool.encode())
        self.host.commit("main", {"cluster.yaml": self.config})

    def order(self, harness: NodeHarness) -> None:
        """Approve a reboot of the harness's node in Git."""
        harness.put(harness.record())
        self.host.commit("incidents", harness.files)

    def clock(self) -> datetime:
        return START + timedelta(seconds=1 + time.monotonic() - self.started)

    def repository(self, name: str = "mirror") -> Repository:
        return Repository(self.host.url, self.workdir / name, limit=timedelta(seconds=20))

    def git_source(self, repository: Repository) -> GitSource:
        settings = GitSettings(url=self.host.url, mirror=self.workdir / "mirror", backend="git")
        return GitSource(repository, settings, "example")

    def reconciler(self, intervals: ControllerIntervals = INTERVALS) -> Reconciler:
        """Return the whole reconciler, wired as the program wires it."""
        repository = self.repository()
        source, pool = self.git_source(repository), ThreadPoolExecutor(4)
        clients = self.clients(repository)

        def desired() -> Desired:
            self.looks.append(source.desired)
            return source.desired

        controller = RepairController(clients, desired, intervals, self.clock, pool)
        crds, hour = definitions(PACKAGED), timedelta(hours=1)
        writer = KubernetesWriter(Connection(self.applier, 5), "clusterwright")
        applier = ConfigController(writer, "clusterwright", crds, hour, self.clock)
        return connect_loops(source, controller, applier, intervals, self.clock)

    def clients(self, repository: Repository) -> RepairClients:
        """Return the outside systems of a repair controller."""
        harness = next(iter(self.harnesses.values()))
        connection = Connection(self.account, 5)
        return RepairClients(
            reader=KubernetesReader(connection),
            writer=KubernetesWriter(connection, "clusterwright"),
            reports=NodeReports(harness.bot.url, harness.token_file, None, 5),
            recorder=GitRecorder(repository, "incidents", Person("Clusterwright", "clusterwright@localhost")),
            connect=lambda _kind: Machines(self.harnesses, self.hangs),
            namespace="clusterwright",
        )

    def controller_by_hand(self) -> RepairController:
        """Return a controller that does everything within `reconcile`, after one look at Git."""
        repository = self.repository()
        source = self.git_source(repository)
        source.read(self.clock())
        clients = self.clients(repository)
        return RepairController(clients, lambda: source.desired, INTERVALS, self.clock, InlinePool())

    @contextmanager
    def run(self, intervals: ControllerIntervals = INTERVALS) -> Iterator[Reconciler]:
        """Let a reconciler and the nodes live until the block ends."""
        reconciler, ended = self.reconciler(intervals), threading.Event()
        threads = [
            threading.Thread(target=reconciler.run, name="reconciler"),
            threading.Thread(target=self._live, args=(ended,), name="nodes"),
        ]
        for thread in threads:
            thread.start()
        try:
            yield reconciler
        finally:
            for event in self.hangs.values():
                event.set()
            reconciler.stop()
            ended.set()
            for thread in threads:
                thread.join(30)

    def wait(self, found: Callable[[], object], seconds: float = 60.0) -> None:
        """Return once `found` is truthy; raises AssertionError after `seconds`."""
        until = time.monotonic() + seconds
        while not found():
            assert time.monotonic() < until, "it did not happen"
            time.sleep(0.05)

    def wait_passes(self, passes: int, path: str) -> None:
        """Return once the reconciler has made so many whole passes that knew of the file at `path` in Git."""
        # A pass looks at Git at least twice: for its records, and for the configuration.
        self.wait(lambda: sum(path in each.paths for each in list(self.looks)) > 2 * (passes + 1))

    def outcomes(self) -> list[str]:
        """Return the paths of the outcomes in Git."""
        paths = self.host.show("ls-tree", "-r", "--name-only", "incidents").splitlines()
        return [path for path in paths if "/outcome-" in path]

    def _live(self, ended: threading.Event) -> None:
        while not ended.wait(0.1):
            for harness in self.harnesses.values():
                harness.now = self.clock()
                try:
                    harness.live()
                except httpx.TransportError:
                    continue
