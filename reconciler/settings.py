"""Settings of the reconciler, and the tables it shares with the bot: one TOML file or the environment.

The file holds the tables of all programs; each validates its own and passes over the others'. A variable
`CLUSTERWRIGHT_GIT__URL` overrides `url` in the table `git`. What nobody knows is refused, wherever it stands.
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
    """Where the cluster's repository is and how it is read and written.

    `mirror` is a local directory that the program may create. `token_file` is read at each use. The back end
    `github` writes by its REST API and needs `repository` (`owner/name`); `git` pushes to `url`.
    """

    url: str
    mirror: Path
    token_file: Path | None = None
    backend: Literal["github", "git"] = "github"
    api_url: str = "https://api.github.com"
    repository: str | None = None
    config_branch: str = "main"
    incidents_branch: str = "incidents"
    poll_seconds: Seconds = 10.0
    timeout_seconds: Seconds = 30.0
    committer_name: str = "Clusterwright"
    committer_email: str = "clusterwright@localhost"

    @model_validator(mode="after")
    def _github_names_its_repository(self) -> "GitSettings":
        if self.backend == "github" and not self.repository:
            raise ValueError('repository is missing; backend "github" needs it as "owner/name"')
        return self


class KubernetesSettings(SettingsTable):
    """How to reach the API server. Without `kubeconfig` the pod's own ServiceAccount is used."""

    kubeconfig: Path | None = None
    namespace: str = "clusterwright"
    timeout_seconds: Seconds = 10.0


class RedfishSettings(SettingsTable):
    """How to log in to the BMCs. `password_file` is read at each use."""

    username: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    timeout_seconds: Seconds = 10.0


class ReconcilerTable(SettingsTable):
    """The reconciler's own table.

    `manifests_dir` replaces the manifests that are packaged with the program. `report_interval_seconds` is
    the agents' interval: a report older than three of them proves nothing. `workers` bounds the repairs that
    are looked at at once. `apply_seconds` is how often our own definitions are applied again.
    """

    bot_url: str
    bot_token_file: Path
    bot_ca_file: Path | None = None
    bot_timeout_seconds: Seconds = 5.0
    report_interval_seconds: Seconds = 30.0
    manifests_dir: Path | None = None
    pass_seconds: Seconds = 2.0
    apply_seconds: Seconds = 300.0
    workers: Annotated[int, Field(ge=1, le=64)] = 8
    redfish: RedfishSettings = RedfishSettings()


class ProgramSettings(BaseSettings):
    """What the settings of one program have in common: the environment wins over the file."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    cluster: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    git: GitSettings
    kubernetes: KubernetesSettings = KubernetesSettings()

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
    """Everything the reconciler is told at start."""

    reconciler: ReconcilerTable


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
