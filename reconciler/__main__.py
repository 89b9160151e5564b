"""`python -m reconciler [--config FILE]`: runs the reconciler until it is told to stop.

Exit code 0 after SIGTERM or SIGINT, 2 when the settings cannot be used.
"""

import argparse
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from reconciler.apply.definitions import PACKAGED, definitions
from reconciler.kube.connection import Connection
from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.clients import RepairClients
from reconciler.repair.controller import ControllerIntervals, RepairController
from reconciler.repair.providers.redfish import Redfish
from reconciler.repair.reports import NodeReports
from reconciler.settings import GitSettings, ReconcilerSettings, RedfishSettings, SettingsError, load
from reconciler.source.git_source import GitSource
from reconciler.source.github import GitHubHost, GitHubRecorder
from reconciler.source.recording import Person, Recorder
from reconciler.source.repository import GitRecorder, Repository


def main(argv: list[str] | None = None) -> int:
    """Run the reconciler and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="reconciler", description="Makes Kubernetes match Git and carries out approved repairs.",
        epilog="example: python -m reconciler --config /etc/clusterwright/clusterwright.toml",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, help="settings file (TOML); else CLUSTERWRIGHT_CONFIG")
    arguments = parser.parse_args(argv)
    _log_as_json()
    try:
        reconciler = build(load(ReconcilerSettings, arguments.config))
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a person started it and reads this
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: reconciler.stop())
    log = structlog.get_logger()
    log.info("reconciler started")
    reconciler.run()
    log.info("reconciler stopped")
    return 0


def build(settings: ReconcilerSettings) -> RepairController:
    """Return a reconciler that is wired to the outside; raises SettingsError. Sends nothing yet."""
    own, kubernetes = settings.reconciler, settings.kubernetes
    crds = definitions(own.manifests_dir or PACKAGED)
    connection = Connection(kubernetes.kubeconfig, kubernetes.timeout_seconds)
    repository = _repository(settings.git)
    clients = RepairClients(
        reader=KubernetesReader(connection),
        writer=KubernetesWriter(connection, kubernetes.namespace),
        reports=NodeReports(own.bot_url, own.bot_token_file, own.bot_ca_file, own.bot_timeout_seconds),
        recorder=_recorder(settings.git, repository),
        machines=lambda: _redfish(own.redfish),
        namespace=kubernetes.namespace,
    )
    poll = timedelta(seconds=settings.git.poll_seconds)
    intervals = ControllerIntervals(
        each_pass=timedelta(seconds=own.pass_seconds),
        git_poll=poll,
        git_valid=timedelta(seconds=settings.git.timeout_seconds) + 3 * poll,
        apply_every=timedelta(seconds=own.apply_seconds),
        stale_after=3 * timedelta(seconds=own.report_interval_seconds),
        workers=own.workers,
    )
    git_source = GitSource(repository, settings.git, settings.cluster)
    return RepairController(clients, git_source, intervals, crds, lambda: datetime.now(UTC))


def _repository(git: GitSettings) -> Repository:
    branches = (git.config_branch, git.incidents_branch)
    limit = timedelta(seconds=git.timeout_seconds)
    try:
        return Repository(git.url, git.mirror, git.token_file, branches, limit)
    except ValueError as error:
        raise SettingsError(f"git: {error}") from error


def _recorder(git: GitSettings, repository: Repository) -> Recorder:
    committer = Person(git.committer_name, git.committer_email)
    if git.backend == "git":
        return GitRecorder(repository, git.incidents_branch, committer)
    if git.repository is None or git.token_file is None:
        raise SettingsError('git.token_file: is missing; backend "github" needs it')
    host = GitHubHost(git.api_url, git.repository, git.token_file)
    return GitHubRecorder(host, git.incidents_branch, committer)


def _redfish(settings: RedfishSettings) -> Redfish:
    password = None
    if settings.password_file is not None:
        # A password that cannot be read is a BMC that refuses us: said where the repair waits.
        password = (
            settings.password_file.read_text(encoding="utf-8").strip()
            if settings.password_file.exists()
            else None
        )
    return Redfish(settings.username, password, settings.ca_file, settings.timeout_seconds)


def _log_as_json() -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


if __name__ == "__main__":
    sys.exit(main())
