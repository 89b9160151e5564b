"""Builds the bot from its settings: connections below, loops above, one web application. Wiring only."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from starlette.applications import Starlette

from bot.incidents.reports import ReportStore
from bot.incidents.status import StatusReader
from bot.incidents.store import IncidentStore
from bot.loops.detect import DetectionTimes
from bot.loops.git_incident_log import GitIncidentLog
from bot.loops.lifecycle import ExternalSystems, Lifecycle, LoopIntervals
from bot.metrics import Metrics
from bot.scontrol import scontrol_reader
from bot.settings import BotSettings, BotTable, SlackSettings, SlurmSettings
from bot.slack.connection import SlackConnection
from bot.slack.inbound import SlackInbound
from bot.slack.outbound import SlackChat
from bot.web.findings_api import FindingsApi
from reconciler.kube.read import KubernetesReader
from reconciler.settings import GitSettings, SettingsError
from reconciler.source.connect import open_recorder, open_repository

COMMIT_GRACE_SECONDS: Final = 10.0
"""How long a commit in progress may take when the bot is told to stop."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot, ready to run. `web` serves programs, and Slack in HTTP mode; `git_writer` runs the commits."""

    web: Starlette
    lifecycle: Lifecycle
    git_writer: Executor
    inbound: SlackInbound
    slack_connection: SlackConnection
    app_token_file: Path | None

    async def work(self) -> None:
        """Run every loop until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lifecycle.run(), name="lifecycle")
            group.create_task(self.slack_connection.authenticate(), name="authenticate")
            if self.app_token_file is not None:
                file = self.app_token_file
                group.create_task(self.slack_connection.listen(lambda: secret(file)), name="socket")

    async def close(self) -> None:
        """Finish the clicks and the commit in progress; raises TimeoutError when the commit takes too long."""
        await self.inbound.close()
        await asyncio.wait_for(
            asyncio.to_thread(self.git_writer.shutdown, cancel_futures=True), COMMIT_GRACE_SECONDS
        )


def build(settings: BotSettings) -> Bot:
    """Return a bot that is connected to its systems; raises SettingsError. Sends nothing yet."""
    own, slack = settings.bot, settings.bot.slack
    _check_files(own)
    metrics, writer = Metrics(), ThreadPoolExecutor(max_workers=1, thread_name_prefix="git-writer")
    store, reports = IncidentStore(settings.cluster, metrics, _now), ReportStore(_now)
    reader = KubernetesReader.connect(settings.kubernetes.kubeconfig, settings.kubernetes.timeout_seconds)
    chat, detection = _chat(slack, metrics), _detection(own)
    systems = ExternalSystems(
        _incident_log(settings.git, writer), reader, chat, time.monotonic, _slurm(own.slurm)
    )
    lifecycle = Lifecycle(store, reports, systems, detection, _intervals(settings))
    status = StatusReader(store, reports, detection.report_interval)
    inbound = SlackInbound(chat, status, lifecycle.decisions, metrics, asyncio.sleep)
    signing = secret(slack.signing_secret_file) if slack.mode == "http" and slack.signing_secret_file else ""
    slack_connection = SlackConnection(inbound, chat, store, signing, asyncio.sleep)
    api = FindingsApi(store, reports, lifecycle.report_arrived, reader, settings.kubernetes.namespace)
    routes = [*api.routes(), *([slack_connection.route()] if slack.mode == "http" else [])]
    app_token_file = slack.app_token_file if slack.mode == "socket" else None
    return Bot(Starlette(routes=routes), lifecycle, writer, inbound, slack_connection, app_token_file)


def secret(file: Path) -> str:
    """Return a secret from its file; raises OSError."""
    return file.read_text(encoding="utf-8").strip()


def _now() -> datetime:
    return datetime.now(UTC)


def _check_files(own: BotTable) -> None:
    slack = own.slack
    wanted = {
        "bot.tls_cert_file": own.tls_cert_file,
        "bot.tls_key_file": own.tls_key_file,
        "bot.slack.bot_token_file": slack.bot_token_file,
        "bot.slack.app_token_file": slack.app_token_file if slack.mode == "socket" else None,
        "bot.slack.signing_secret_file": slack.signing_secret_file if slack.mode == "http" else None,
    }
    for key, file in wanted.items():
        if file is None:
            continue
        try:
            empty = not secret(file)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{key}: {file}: cannot be read ({error})") from error
        if empty:
            raise SettingsError(f"{key}: {file}: is empty")


def _incident_log(git: GitSettings, writer: Executor) -> GitIncidentLog:
    branches = (git.config_branch, git.incidents_branch)
    repository = open_repository(git)
    return GitIncidentLog(repository, open_recorder(git, repository), branches, writer)


def _chat(slack: SlackSettings, metrics: Metrics) -> SlackChat:
    file = slack.bot_token_file
    return SlackChat.connect(
        slack.base_url, slack.timeout_seconds, lambda: secret(file), slack.channel, metrics
    )


def _slurm(slurm: SlurmSettings | None) -> Callable[[], str] | None:
    if slurm is None:
        return None
    return scontrol_reader(slurm.scontrol, slurm.conf_file, slurm.timeout_seconds)


def _detection(own: BotTable) -> DetectionTimes:
    return DetectionTimes(
        report_interval=timedelta(seconds=own.report_interval_seconds),
        clear_after=timedelta(seconds=own.clear_after_seconds),
        offer_lifetime=timedelta(seconds=own.offer_lifetime_seconds),
    )


def _intervals(settings: BotSettings) -> LoopIntervals:
    own = settings.bot
    return LoopIntervals(
        sweep=timedelta(seconds=own.sweep_seconds),
        git_poll=timedelta(seconds=settings.git.poll_seconds),
        git_retry=timedelta(seconds=own.record_retry_seconds),
        nodes_poll=timedelta(seconds=own.nodes_poll_seconds),
        repairs_poll=timedelta(seconds=own.repair_poll_seconds),
        offer_refresh=timedelta(seconds=own.offer_refresh_seconds),
        edit_after=timedelta(seconds=own.edit_seconds),
        slurm_poll=timedelta(seconds=(own.slurm or SlurmSettings()).poll_seconds),
    )
