"""Builds the reconciler from its settings: clients, controllers, and the loops that run them."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from checks.report import SILENCE_REPORTS
from reconciler.apply.controller import ConfigController
from reconciler.apply.definitions import PACKAGED, definitions
from reconciler.kube.connection import Connection
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.loop import Loop
from reconciler.repair.clients import RepairClients
from reconciler.repair.controller import ControllerIntervals, RepairController
from reconciler.repair.reports import NodeReports
from reconciler.settings import ReconcilerSettings
from reconciler.source.connect import open_recorder, open_repository
from reconciler.source.git_source import GitSource


@dataclass(frozen=True, slots=True)
class Reconciler:
    """The three loops of the program. An error in one does not stop the others."""

    git: Loop
    config: Loop
    repairs: Loop
    controller: RepairController

    def run(self) -> None:
        """Run until `stop`; returns once no repair is being worked on."""
        for loop in (self.git, self.config):
            threading.Thread(target=loop.run, name=loop.name, daemon=True).start()
        self.repairs.run()
        self.controller.stop()

    def stop(self) -> None:
        """End every loop after its current pass; safe from any thread."""
        for loop in (self.git, self.config, self.repairs):
            loop.stop()


def build(settings: ReconcilerSettings, clock: Callable[[], datetime]) -> Reconciler:
    """Return a reconciler with all its clients; raises SettingsError. Sends nothing yet."""
    own, kubernetes = settings.reconciler, settings.kubernetes
    crds = definitions(own.manifests_dir or PACKAGED)
    connection = Connection(kubernetes.kubeconfig, kubernetes.timeout_seconds)
    writer = KubernetesWriter(connection, kubernetes.namespace)
    repository = open_repository(settings.git)
    clients = RepairClients(
        reader=KubernetesReader(connection),
        writer=writer,
        reports=NodeReports(own.bot_url, own.bot_token_file, own.bot_ca_file, own.bot_timeout_seconds),
        recorder=open_recorder(settings.git, repository),
        connect=lambda kind: kind.connect(own),
        namespace=kubernetes.namespace,
    )
    source = GitSource(repository, settings.git, settings.cluster)
    pool = ThreadPoolExecutor(own.workers, thread_name_prefix="repair")
    controller = RepairController(clients, lambda: source.desired, intervals(settings), clock, pool)
    applier = ConfigController(
        writer, kubernetes.namespace, crds, timedelta(seconds=own.apply_seconds), clock
    )
    return connect_loops(source, controller, applier, intervals(settings), clock)


def intervals(settings: ReconcilerSettings) -> ControllerIntervals:
    """Return the intervals: a report is stale after three of them, Git after three polls and a timeout."""
    own, git = settings.reconciler, settings.git
    return ControllerIntervals(
        each_pass=timedelta(seconds=own.pass_seconds),
        git_poll=timedelta(seconds=git.poll_seconds),
        git_valid=timedelta(seconds=git.timeout_seconds + 3 * git.poll_seconds),
        stale_after=SILENCE_REPORTS * timedelta(seconds=own.report_interval_seconds),
    )


def connect_loops(
    source: GitSource,
    controller: RepairController,
    applier: ConfigController,
    every: ControllerIntervals,
    clock: Callable[[], datetime],
) -> Reconciler:
    """Return the loops; news from Git wakes the controllers."""
    config = Loop("config", lambda: applier.reconcile(source.desired.config), every.each_pass)

    def reconcile() -> None:
        if controller.reconcile():
            repairs.wake()

    repairs = Loop("repairs", reconcile, every.each_pass)

    def follow() -> None:
        if source.read(clock()):
            config.wake()
            repairs.wake()

    return Reconciler(Loop("git", follow, every.git_poll), config, repairs, controller)
