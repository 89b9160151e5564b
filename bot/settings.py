"""Settings of the bot: its own table, and those it shares with the reconciler."""

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reconciler.settings import ProgramSettings, Seconds, SettingsTable


class SlackSettings(SettingsTable):
    """Where people are. Tokens are files that are read again whenever they are used.

    `channel` is an id (`C…`), never a name. Socket Mode needs `app_token_file`, HTTP mode
    `signing_secret_file`; in HTTP mode Slack sends to `/slack/events` of `bot.listen`.
    """

    mode: Literal["socket", "http"] = "socket"
    base_url: Annotated[str, Field(pattern=r"^https?://.+/$")] = "https://slack.com/api/"
    channel: Annotated[str, Field(pattern=r"^[CGD][A-Z0-9]{2,}$")]
    bot_token_file: Path
    app_token_file: Path | None = None
    signing_secret_file: Path | None = None
    timeout_seconds: Seconds = 10.0

    @model_validator(mode="after")
    def _mode_has_its_secret(self) -> "SlackSettings":
        if self.mode == "socket" and self.app_token_file is None:
            raise ValueError('app_token_file is missing; mode "socket" needs it')
        if self.mode == "http" and self.signing_secret_file is None:
            raise ValueError('signing_secret_file is missing; mode "http" needs it')
        return self


class SlurmSettings(SettingsTable):
    """How to ask Slurm's controller about the nodes; without this table it is not asked.

    `scontrol` is Slurm's client, of a version that the controller takes, `conf_file` its slurm.conf when that
    is not where the client looks. One question is asked for the whole cluster every `poll_seconds`.
    """

    scontrol: str = "scontrol"
    conf_file: Path | None = None
    poll_seconds: Seconds = 30.0
    timeout_seconds: Seconds = 10.0


class BotTable(SettingsTable):
    """The bot's own table.

    `report_interval_seconds` is the agents' interval: three missed reports are silence. Findings that stay
    away for `clear_after_seconds` close their incident. An offer stands for `offer_lifetime_seconds`.
    `sweep_seconds` bounds how late a deadline is noticed, `edit_seconds` how often one message is edited for
    news alone, `offer_refresh_seconds` how old the list of pods that people are shown may be.
    """

    listen: str = "0.0.0.0:8443"
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    report_interval_seconds: Seconds = 30.0
    clear_after_seconds: Seconds = 300.0
    offer_lifetime_seconds: Seconds = 3600.0
    sweep_seconds: Seconds = 1.0
    repair_poll_seconds: Seconds = 2.0
    nodes_poll_seconds: Seconds = 5.0
    offer_refresh_seconds: Seconds = 10.0
    record_retry_seconds: Seconds = 3.0
    edit_seconds: Seconds = 3.0
    slack: SlackSettings
    slurm: SlurmSettings | None = None

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
    """Everything the bot is told at start."""

    bot: BotTable
