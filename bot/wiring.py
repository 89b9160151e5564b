"""Puts the bot together from its settings: doors below, loops above, one web application."""

import asyncio
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog
from starlette.applications import Starlette

from bot.correlate import is_silent
from bot.findings_api import FindingsApi
from bot.lifecycle.desk import Desk
from bot.lifecycle.loop import Lifecycle, Outside, Times
from bot.lifecycle.metrics import Metrics
from bot.lifecycle.notice import Patience
from bot.lifecycle.reports import ReportBook
from bot.records.ledger import Ledger
from bot.scontrol import asking
from bot.settings import BotTable, Settings, SlackSettings, SlurmSettings
from bot.slack.connect import Entrance
from bot.slack.hear import Hearer
from bot.slack.speak import Speaker
from reconciler.forge import GitHubRecorder, Host
from reconciler.observe import Observer
from reconciler.recorder import Person, Recorder
from reconciler.repository import GitRecorder, Repository
from reconciler.settings import GitSettings, SettingsError

LEAVE_SECONDS: Final = 10.0
"""How long a commit in flight may take when the bot is told to stop."""

_SECRET: Final = re.compile(
    r"(xox[a-z]-|xapp-|gh[a-z]_|github_pat_|eyJ)[A-Za-z0-9_.\-]+"
    r"|(ticket|response_url)=[^\s\"]+|https?://[^\s\"]*/(actions|commands)/[^\s\"]+"
)
"""Tokens, tickets and one-time addresses, as Slack, GitHub and Kubernetes write them."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The bot, ready to run. `web` serves programs, and Slack in HTTP mode."""

    web: Starlette
    lifecycle: Lifecycle
    ledger: Ledger
    hearer: Hearer
    entrance: Entrance
    app_token_file: Path | None

    async def work(self) -> None:
        """Run every loop until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lifecycle.run(), name="lifecycle")
            group.create_task(self.entrance.introduce(), name="introduce")
            if self.app_token_file is not None:
                file = self.app_token_file
                group.create_task(self.entrance.listen(lambda: secret(file)), name="socket")

    async def close(self) -> None:
        """Finish clicks and the commit in flight."""
        await self.hearer.close()
        await asyncio.wait_for(asyncio.to_thread(self.ledger.close), LEAVE_SECONDS)


def build(settings: Settings) -> Bot:
    """Return a bot that is wired to the outside; raises SettingsError. Sends nothing yet."""
    own, slack = settings.bot, settings.bot.slack
    _check_files(own)
    metrics, clock = Metrics(), _now
    desk, book = Desk(settings.cluster, metrics, clock), ReportBook(clock)
    observer = Observer.connect(settings.kubernetes.kubeconfig, settings.kubernetes.timeout_seconds)
    ledger = _ledger(settings.git)
    speaker = _speaker(slack, metrics)
    outside = Outside(ledger, observer, speaker, _slurm(own.slurm))
    lifecycle = Lifecycle(desk, book, outside, _patience(own), _times(settings))
    hearer = Hearer(speaker, desk, lifecycle.decisions, lambda: _reporting(book, own))
    signing = secret(slack.signing_secret_file) if slack.mode == "http" and slack.signing_secret_file else ""
    entrance = Entrance(hearer, speaker, desk, signing)
    api = FindingsApi(desk, book, lifecycle.heard, observer, settings.kubernetes.namespace)
    routes = [*api.routes(), *([entrance.route()] if slack.mode == "http" else [])]
    app_token_file = slack.app_token_file if slack.mode == "socket" else None
    return Bot(Starlette(routes=routes), lifecycle, ledger, hearer, entrance, app_token_file)


def secret(file: Path) -> str:
    """Return a secret from its file; raises OSError."""
    return file.read_text(encoding="utf-8").strip()


def log_as_json() -> None:
    """Send our log, and the warnings of libraries, to stderr as JSON lines without secrets."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
            _mask,
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    forward = _Forward()
    forward.setLevel(logging.WARNING)
    logging.basicConfig(handlers=[forward], level=logging.WARNING)


class _Forward(logging.Handler):
    """Gives what libraries log to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).warning("library_spoke", text=record.getMessage()[:500])


def _mask(_: Any, __: str, line: Any) -> str:
    return _SECRET.sub("(secret)", str(line))


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


def _ledger(git: GitSettings) -> Ledger:
    branches = (git.config_branch, git.incidents_branch)
    limit = timedelta(seconds=git.timeout_seconds)
    try:
        repository = Repository(git.url, git.mirror, git.token_file, branches, limit)
    except ValueError as error:
        raise SettingsError(f"git: {error}") from error
    return Ledger(repository, _recorder(git, repository), branches)


def _recorder(git: GitSettings, repository: Repository) -> Recorder:
    committer = Person(git.committer_name, git.committer_email)
    if git.backend == "git":
        return GitRecorder(repository, git.incidents_branch, committer)
    if git.repository is None or git.token_file is None:
        raise SettingsError('git.token_file: is missing; backend "github" needs it')
    host = Host(git.api_url, git.repository, git.token_file)
    return GitHubRecorder(host, git.incidents_branch, committer)


def _speaker(slack: SlackSettings, metrics: Metrics) -> Speaker:
    file = slack.bot_token_file
    return Speaker.connect(
        slack.base_url, slack.timeout_seconds, lambda: secret(file), slack.channel, metrics
    )


def _slurm(slurm: SlurmSettings | None) -> Callable[[], str] | None:
    if slurm is None:
        return None
    return asking(slurm.scontrol, slurm.conf_file, slurm.timeout_seconds)


def _patience(own: BotTable) -> Patience:
    return Patience(
        report_interval=timedelta(seconds=own.report_interval_seconds),
        clear_after=timedelta(seconds=own.clear_after_seconds),
        offer_lifetime=timedelta(seconds=own.offer_lifetime_seconds),
    )


def _times(settings: Settings) -> Times:
    own = settings.bot
    return Times(
        sweep=timedelta(seconds=own.sweep_seconds),
        git_poll=timedelta(seconds=settings.git.poll_seconds),
        git_retry=timedelta(seconds=own.record_retry_seconds),
        nodes_poll=timedelta(seconds=own.nodes_poll_seconds),
        repairs_poll=timedelta(seconds=own.repair_poll_seconds),
        offer_refresh=timedelta(seconds=own.offer_refresh_seconds),
        edit_after=timedelta(seconds=own.edit_seconds),
        slurm_poll=timedelta(seconds=(own.slurm or SlurmSettings()).poll_seconds),
    )


def _reporting(book: ReportBook, own: BotTable) -> int:
    now, interval = _now(), own.report_interval_seconds
    return sum(not is_silent(held.received_at, now, interval) for held in book.all().values())
