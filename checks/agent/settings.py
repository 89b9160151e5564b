"""Settings of the agent: the table `agent` of the shared TOML file, overridden by the environment.

`CLUSTERWRIGHT_AGENT__NODE` overrides `node` in that table. Tables of the other programs are passed over; what
no program knows is refused, wherever it stands.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

PREFIX = "CLUSTERWRIGHT_"
"""Start of every environment variable that is ours."""

CONFIG_VARIABLE = "CLUSTERWRIGHT_CONFIG"
"""Names the settings file when the command line does not."""

TABLES = frozenset({"cluster", "git", "kubernetes", "agent", "bot", "reconciler"})
"""Top-level names that some program of ours knows."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""A positive time span in seconds, at most one day."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
"""The name of a Kubernetes object."""


class SettingsError(Exception):
    """The settings cannot be used; the text names the wrong key and where it stands."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything the agent is told at start.

    `token_file` holds the projected ServiceAccount token and is read at each use, `ca_file` the bot's CA.
    `root` is where the node's file system is mounted; `kernel_log` is a path under it. `state_dir` survives a
    restart of the agent, `policy_dir` holds what the cluster's repository says about the checks.
    `poll_seconds` is how often a kernel log that is a plain file is looked at, `health_listen` where
    `/healthz` and `/metrics` are served (`host:port`), empty for nowhere.
    """

    node: Name
    bot_url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    token_file: Path
    state_dir: Path
    ca_file: Path | None = None
    root: Path = Path("/")
    kernel_log: str = "dev/kmsg"
    policy_dir: Path = Path("/etc/clusterwright/checks")
    health_listen: Annotated[str, msgspec.Meta(pattern=r"^$|^([^\s:]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}$")] = ""
    report_interval_seconds: Seconds = 30.0
    timeout_seconds: Seconds = 5.0
    poll_seconds: Seconds = 0.5

    @property
    def kernel_log_path(self) -> Path:
        """Where the kernel log is read."""
        return self.root / self.kernel_log.lstrip("/")


def load(file: Path | None, environment: Mapping[str, str]) -> Settings:
    """Return the settings from `file` (else the one CONFIG_VARIABLE names) and the environment.

    Raises SettingsError naming the wrong key and where it stands.
    """
    named = environment.get(CONFIG_VARIABLE)
    source = file or (Path(named) if named else None)
    values = _table(source) if source else {}
    overrides = _overrides(environment)
    for name in (*values, *overrides):
        if name not in Settings.__struct_fields__:
            raise SettingsError(f"{_place(name, source, overrides)}: unknown key; known are {_known()}")
    for name in _REQUIRED:
        if name not in values and name not in overrides:
            variable = f"{PREFIX}AGENT__{name.upper()}"
            raise SettingsError(f"{source or 'environment'}: agent.{name} is missing; set it or {variable}")
    return _convert({**values, **overrides}, source, overrides)


def _convert(values: Mapping[str, Any], source: Path | None, overrides: Mapping[str, str]) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        key = re.search(r"`\$\.(\w+)", str(error))
        where = _place(key[1], source, overrides) if key else str(source or "environment")
        raise SettingsError(f"{where}: {str(error).partition(' - at ')[0]}") from error


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    raise ValueError("Expected a path")


def _table(file: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is not TOML ({error})") from error
    for name in tables:
        if name not in TABLES:
            raise SettingsError(f"{file}: {name}: unknown key; known are {', '.join(sorted(TABLES))}")
    table = tables.get("agent", {})
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: agent: must be a table; write [agent]")
    return table


def _overrides(environment: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE or _SERVICE_LINK.match(name):
            continue
        table, _, key = name.removeprefix(PREFIX).lower().partition("__")
        if table not in TABLES:
            known = ", ".join(sorted(TABLES))
            raise SettingsError(f"environment: {name}: unknown variable; after {PREFIX} comes one of {known}")
        if table == "agent":
            values[key] = environment[name]
    return values


def _place(key: str, source: Path | None, overrides: Mapping[str, str]) -> str:
    if key in overrides:
        return f"environment: {PREFIX}AGENT__{key.upper()}"
    return f"{source}: agent.{key}"


def _known() -> str:
    return ", ".join(sorted(Settings.__struct_fields__))


_REQUIRED = tuple(field.name for field in msgspec.structs.fields(Settings) if field.required)

_SERVICE_LINK = re.compile(
    r"CLUSTERWRIGHT_\w*?(?:_SERVICE_HOST|_SERVICE_PORT(?:_\w+)?|_PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)\w*)?)\Z"
)
"""Variables that the kubelet sets for every Service of the namespace; ours is named clusterwright-bot."""
