"""Settings of the reconciler, and the tables it shares with the bot: one TOML file or the environment.

The file holds the tables of all programs. Each program validates its own tables and ignores the others. The
variable `CLUSTERWRIGHT_GIT__URL` overrides `url` in the table `git`. Unknown keys are refused in both places.
"""

import argparse
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as SourceError

PREFIX = "CLUSTERWRIGHT_"
"""Start of every environment variable that is ours."""

CONFIG_VARIABLE = "CLUSTERWRIGHT_CONFIG"
"""Names the settings file when the command line does not."""

TABLES = frozenset({"cluster", "git", "kubernetes", "agent", "bot", "reconciler"})
"""Top-level names that some program of ours knows."""

Seconds = Annotated[float, Field(gt=0, le=86_400)]
"""A positive time span in seconds, at most one day."""


class SettingsError(Exception):
    """The settings cannot be used; the text names each wrong key and where it stands, one a line."""


class SettingsTable(BaseModel):
    """One table of the settings file."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class GitSettings(SettingsTable):
    """The cluster's repository: where it is, and how the programs read and write it."""

    url: str
    """Address that `git fetch` takes. With the back end `git`, commits are pushed here too."""

    mirror: Path
    """Local directory for a bare clone. The program creates it. It is a cache and may be lost."""

    token_file: Path | None = None
    """File with the access token, read again at each use. Without it, no credentials are sent."""

    backend: Literal["github", "git"] = "github"
    """How commits are written: `github` uses the REST API of GitHub, `git` pushes to `url`."""

    api_url: str = "https://api.github.com"
    """Base address of the REST API. Set it for GitHub Enterprise Server."""

    repository: str | None = None
    """Repository as `owner/name`. The back end `github` requires it."""

    config_branch: str = "main"
    """Branch with the configuration, which people change by pull request."""

    incidents_branch: str = "incidents"
    """Branch with incidents, decisions, repair records and outcomes, which the programs write."""

    poll_seconds: Seconds = 10.0
    """How often the repository is fetched, in seconds."""

    timeout_seconds: Seconds = 30.0
    """How long one git command or API request may take, in seconds."""

    committer_name: str = "Clusterwright"
    """Name of the committer. The author of an approval is the person who approved."""

    committer_email: str = "clusterwright@localhost"
    """E-mail address of the committer."""

    @model_validator(mode="after")
    def _github_names_its_repository(self) -> "GitSettings":
        if self.backend == "github" and not self.repository:
            raise ValueError('repository is missing; backend "github" needs it as "owner/name"')
        return self


class KubernetesSettings(SettingsTable):
    """How to reach the Kubernetes API server."""

    kubeconfig: Path | None = None
    """A kubeconfig file. Without it, the ServiceAccount of the program's pod is used."""

    namespace: str = "clusterwright"
    """Namespace of the programs, which holds the locks of repairs and the ConfigMap of the checks."""

    timeout_seconds: Seconds = 10.0
    """How long one request may take, in seconds."""


class RedfishSettings(SettingsTable):
    """How to log in to the BMCs of the nodes."""

    username: str | None = None
    """Account on the BMCs. Without it, no credentials are sent."""

    password_file: Path | None = None
    """File with the password of that account, read again at each use."""

    ca_file: Path | None = None
    """Certificate authorities (PEM) that sign the BMCs' certificates. Without it, those of the system."""

    timeout_seconds: Seconds = 10.0
    """How long one request to a BMC may take, in seconds."""


class ReconcilerTable(SettingsTable):
    """The reconciler: where it asks for reports, how often it works, and how it reaches machines."""

    bot_url: str
    """Address of the bot, which holds the newest report of each node."""

    bot_token_file: Path
    """File with the ServiceAccount token that the bot accepts, read again at each use."""

    bot_ca_file: Path | None = None
    """Certificate authority (PEM) that signed the bot's certificate. Without it, those of the system."""

    bot_timeout_seconds: Seconds = 5.0
    """How long one request to the bot may take, in seconds."""

    report_interval_seconds: Seconds = 30.0
    """How often agents report, in seconds. A report older than three intervals proves nothing."""

    manifests_dir: Path | None = None
    """Directory whose `base/crds` replaces the custom resource definitions packaged with the program."""

    pass_seconds: Seconds = 2.0
    """How often the reconciler compares Git with Kubernetes, in seconds."""

    apply_seconds: Seconds = 300.0
    """How often the custom resource definitions and the checks' ConfigMap are applied again, in seconds."""

    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """How many repairs are worked on at the same time."""

    redfish: RedfishSettings = RedfishSettings()
    """The table `[reconciler.redfish]`."""


class ProgramSettings(BaseSettings):
    """The tables that the bot and the reconciler share. The environment overrides the file."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    cluster: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """Name of the cluster. It must be the name in `cluster.yaml`."""

    git: GitSettings
    """The table `[git]`."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """The table `[kubernetes]`."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, strongest first."""
        return env_settings, init_settings


class ReconcilerSettings(ProgramSettings):
    """The settings of the reconciler."""

    reconciler: ReconcilerTable
    """The table `[reconciler]`."""


AnySettings = TypeVar("AnySettings", bound=ProgramSettings)


def config_argument(program: str, description: str, argv: list[str] | None) -> Path | None:
    """Return the settings file that the command line of a program names, None when it names none."""
    parser = argparse.ArgumentParser(
        prog=program,
        description=description,
        epilog=f"example: python -m {program} --config /etc/clusterwright/clusterwright.toml",
    )
    parser.add_argument("--config", type=Path, help=f"settings file (TOML); else {CONFIG_VARIABLE}")
    file: Path | None = parser.parse_args(argv).config
    return file


def load(program: type[AnySettings], file: Path | None = None) -> AnySettings:
    """Return the settings of `program` from `file` (else the one CONFIG_VARIABLE names) and the environment.

    Raises SettingsError naming every wrong key and where it stands.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    source = file or (Path(named) if named else None)
    tables = _tables(source) if source else {}
    wrong = [*_unknown_tables(tables, source), *_unknown_variables(os.environ)]
    if wrong:
        raise SettingsError("\n".join(wrong))
    own = {name: value for name, value in tables.items() if name in program.model_fields}
    try:
        return program(**own)
    except ValidationError as error:
        raise SettingsError("\n".join(_lines(error, source))) from error
    except SourceError as error:
        raise SettingsError(f"environment: {error}") from error


def _tables(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is not TOML ({error})") from error


def _unknown_tables(tables: Mapping[str, Any], file: Path | None) -> list[str]:
    return [
        f"{file}: {name}: unknown key; known are {', '.join(sorted(TABLES))}"
        for name in sorted(tables)
        if name not in TABLES
    ]


def _unknown_variables(environment: Mapping[str, str]) -> list[str]:
    ours = sorted(name for name in environment if name.startswith(PREFIX) and name != CONFIG_VARIABLE)
    return [
        f"environment: {name}: unknown variable; after {PREFIX} comes one of {', '.join(sorted(TABLES))}"
        for name in ours
        if name.removeprefix(PREFIX).split("__")[0].lower() not in TABLES
    ]


def _lines(error: ValidationError, file: Path | None) -> list[str]:
    return [
        _line(".".join(map(str, each["loc"])), each["type"], each["msg"], file) for each in error.errors()
    ]


def _line(key: str, kind: str, text: str, file: Path | None) -> str:
    variable = PREFIX + key.upper().replace(".", "__")
    where = f"environment: {variable}" if variable in os.environ else f"{file or 'environment'}: {key}"
    match kind:
        case "extra_forbidden":
            return f"{where}: unknown key"
        case "missing":
            return f"{where}: is missing; set it in the file or as {variable}"
        case _:
            return f"{where}: {text.removeprefix('Value error, ')}"
