"""Settings of the bot: its own table, and those it shares with the reconciler."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.settings import ProgramSettings, Seconds, SettingsTable


class SlackSettings(SettingsTable):
    """The Slack workspace, and how the bot talks to it."""

    mode: Literal["socket", "http"] = "socket"
    """How Slack reaches the bot: `socket` (the bot connects) or `http` (Slack posts to `/slack/events`)."""

    base_url: Annotated[str, Field(pattern=r"^https?://.+/$")] = "https://slack.com/api/"
    """Base address of Slack's Web API."""

    channel: Annotated[str, Field(pattern=r"^[CGD][A-Z0-9]{2,}$")]
    """Id of the incident channel (`C…`), not its name. Invite the app to it."""

    bot_token_file: Path
    """File with the bot token (`xoxb-…`), read again at each use."""

    app_token_file: Path | None = None
    """File with the app-level token (`xapp-…`), read again at each use. The mode `socket` requires it."""

    signing_secret_file: Path | None = None
    """File with the signing secret, read again at each use. The mode `http` requires it."""

    timeout_seconds: Seconds = 10.0
    """How long one request to Slack may take, in seconds."""

    @model_validator(mode="after")
    def _mode_has_its_secret(self) -> "SlackSettings":
        if self.mode == "socket" and self.app_token_file is None:
            raise ValueError('app_token_file is missing; mode "socket" needs it')
        if self.mode == "http" and self.signing_secret_file is None:
            raise ValueError('signing_secret_file is missing; mode "http" needs it')
        return self


class SlurmSettings(SettingsTable):
    """How to ask Slurm's controller about the nodes. Without this table, the bot does not ask it."""

    scontrol: str = "scontrol"
    """Slurm's client, of a version that the controller accepts."""

    conf_file: Path | None = None
    """The cluster's slurm.conf, when it is not where the client looks for it."""

    poll_seconds: Seconds = 30.0
    """How often the bot asks, in seconds. One question covers the whole cluster."""

    timeout_seconds: Seconds = 10.0
    """How long one question may take, in seconds."""


class BotTable(SettingsTable):
    """The bot: where it listens, and how long it waits."""

    listen: str = "0.0.0.0:8443"
    """Address and port for reports, `/healthz` and `/metrics`."""

    tls_cert_file: Path | None = None
    """Certificate (PEM) of the bot. Without it and its key, the bot serves plain HTTP."""

    tls_key_file: Path | None = None
    """Private key (PEM) of that certificate."""

    report_interval_seconds: Seconds = 30.0
    """How often agents report, in seconds. A node that misses three reports is silent."""

    clear_after_seconds: Seconds = 300.0
    """How long findings must stay away before their incident closes, in seconds."""

    offer_lifetime_seconds: Seconds = 3600.0
    """How long people can approve an offer before it lapses, in seconds."""

    sweep_seconds: Seconds = 1.0
    """How often deadlines are checked, in seconds."""

    repair_poll_seconds: Seconds = 2.0
    """How often the progress of repairs is read, in seconds."""

    nodes_poll_seconds: Seconds = 5.0
    """How often the list of nodes is read, in seconds."""

    offer_refresh_seconds: Seconds = 10.0
    """How old the list of pods in an offer may become, in seconds."""

    record_retry_seconds: Seconds = 3.0
    """How long to wait after Git did not take a commit, in seconds."""

    edit_seconds: Seconds = 3.0
    """Shortest time between two edits of a message that only bring news, in seconds."""

    slack: SlackSettings
    """The table `[bot.slack]`."""

    slurm: SlurmSettings | None = None
    """The table `[bot.slurm]`."""

    @field_validator("listen")
    @classmethod
    def _address_and_port(cls, listen: str) -> str:
        host, _, port = listen.rpartition(":")
        try:
            ip_address(host.strip("[]"))
        except ValueError as error:
            raise ValueError(
                'must be an address and a port, such as "0.0.0.0:8443" or "[::]:8443"'
            ) from error
        if not port.isdigit() or int(port) > 65_535:
            raise ValueError(f'"{port}" is not a port; it is a number up to 65535')
        return listen

    @model_validator(mode="after")
    def _certificate_has_its_key(self) -> "BotTable":
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file belong together; give both or none")
        return self

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


class BotSettings(ProgramSettings):
    """The settings of the bot."""

    bot: BotTable
    """The table `[bot]`."""
