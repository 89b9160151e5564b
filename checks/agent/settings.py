"""Settings of the agent: the table `agent` of the shared TOML file, overridden by the environment.

`CLUSTERWRIGHT_AGENT__NODE` overrides `node` in that table. Tables of the other programs are ignored; a key
that no program knows is refused, wherever it stands.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

PREFIX = "CLUSTERWRIGHT_"
"""Start of the name of every environment variable that is ours."""

CONFIG_VARIABLE = "CLUSTERWRIGHT_CONFIG"
"""Names the settings file when the command line does not."""

TABLES = frozenset({"cluster", "git", "kubernetes", "agent", "bot", "reconciler"})
"""Top-level keys that one of our programs knows."""

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""A positive time span in seconds, at most one day."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
"""The name of a Kubernetes object."""


class AgentSettingsError(Exception):
    """The settings cannot be used; the text names the wrong key and where it stands."""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the agent is told when it starts."""

    node: Name
    """Name of this node in Kubernetes; the DaemonSet takes it from the pod's `spec.nodeName`."""

    bot_url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    """Where the agent posts its reports: the `http` or `https` URL of the bot's findings API."""

    token_file: Path
    """File with the projected ServiceAccount token. Read for every report, because tokens rotate."""

    state_dir: Path
    """Directory for the agent's state file. It must survive a restart of the agent, so it is a host path."""

    ca_file: Path | None = None
    """File with the CA certificates that the bot's certificate is verified against, in PEM. Read for every
    connection, because it may be renewed. Without it the system's certificates are used."""

    root: Path = Path("/")
    """Where the node's file system is mounted. `/` suits an agent outside a container."""

    kernel_log: str = "dev/kmsg"
    """Path of the kernel log under `root`. The default is the kernel's own device; a plain file works too."""

    policy_dir: Path = Path("/etc/clusterwright/checks")
    """Directory with one policy file (`<pool>.json`) for each pool. The DaemonSet mounts the ConfigMap
    `clusterwright-checks` at the default."""

    health_listen: Annotated[str, msgspec.Meta(pattern=r"^$|^([^\s:]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5}$")] = ""
    """Address (`host:port`) at which the agent serves `/healthz` and `/metrics`. Empty, the default, serves
    neither: outside Kubernetes no port is opened unasked."""

    report_interval_seconds: Seconds = 30.0
    """Seconds between two reports without a change. The bot counts a node as silent after three missed
    reports, so 30 s notices a dead node within two minutes at a few hundred bytes a report."""

    timeout_seconds: Seconds = 5.0
    """Seconds that each step of a report may take: connecting, sending, each wait for the answer. 5 s is
    long for a bot in the same cluster, and a small part of the report interval."""

    poll_seconds: Seconds = 0.5
    """Seconds between two reads of a kernel log that is a plain file; a device is never polled. At 0.5 s a
    line is reported within about a second."""

    @property
    def kernel_log_path(self) -> Path:
        """Where the kernel log is read."""
        return self.root / self.kernel_log.lstrip("/")


def load(file: Path | None, environment: Mapping[str, str]) -> AgentSettings:
    """Return the settings from `file` (else the one CONFIG_VARIABLE names) and the environment.

    Raises AgentSettingsError naming the wrong key and where it stands.
    """
    named = environment.get(CONFIG_VARIABLE)
    source = file or (Path(named) if named else None)
    values = _table(source) if source else {}
    overrides = _overrides(environment)
    for name in (*values, *overrides):
        if name not in AgentSettings.__struct_fields__:
            raise AgentSettingsError(f"{_place(name, source, overrides)}: unknown key; known are {_known()}")
    for name in _REQUIRED:
        if name not in values and name not in overrides:
            variable = f"{PREFIX}AGENT__{name.upper()}"
            raise AgentSettingsError(
                f"{source or 'environment'}: agent.{name} is missing; set it or {variable}"
            )
    return _convert({**values, **overrides}, source, overrides)


def _convert(values: Mapping[str, Any], source: Path | None, overrides: Mapping[str, str]) -> AgentSettings:
    try:
        return msgspec.convert(values, AgentSettings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        key = re.search(r"`\$\.(\w+)", str(error))
        where = _place(key[1], source, overrides) if key else str(source or "environment")
        raise AgentSettingsError(f"{where}: {str(error).partition(' - at ')[0]}") from error


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    raise ValueError("Expected a path")


def _table(file: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise AgentSettingsError(f"{file}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AgentSettingsError(f"{file}: is not TOML ({error})") from error
    for name in tables:
        if name not in TABLES:
            raise AgentSettingsError(f"{file}: {name}: unknown key; known are {', '.join(sorted(TABLES))}")
    table = tables.get("agent", {})
    if not isinstance(table, dict):
        raise AgentSettingsError(f"{file}: agent: must be a table; write [agent]")
    return table


def _overrides(environment: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE or _SERVICE_LINK.match(name):
            continue
        table, _, key = name.removeprefix(PREFIX).lower().partition("__")
        if table not in TABLES:
            known = ", ".join(sorted(TABLES))
            raise AgentSettingsError(
                f"environment: {name}: unknown variable; after {PREFIX} comes one of {known}"
            )
        if table == "agent":
            values[key] = environment[name]
    return values


def _place(key: str, source: Path | None, overrides: Mapping[str, str]) -> str:
    if key in overrides:
        return f"environment: {PREFIX}AGENT__{key.upper()}"
    return f"{source}: agent.{key}"


def _known() -> str:
    return ", ".join(sorted(AgentSettings.__struct_fields__))


_REQUIRED = tuple(field.name for field in msgspec.structs.fields(AgentSettings) if field.required)

_SERVICE_LINK = re.compile(
    r"CLUSTERWRIGHT_\w*?(?:_SERVICE_HOST|_SERVICE_PORT(?:_\w+)?|_PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)\w*)?)\Z"
)
"""Variables that the kubelet sets for every Service of the namespace; ours is named clusterwright-bot."""
