"""Settings of the agent: file and environment, and what each mistake says."""

from pathlib import Path

import pytest

from checks.agent.settings import AgentSettingsError, load

GOOD = {
    "CLUSTERWRIGHT_AGENT__NODE": "gpu-01",
    "CLUSTERWRIGHT_AGENT__BOT_URL": "https://bot.example:8443",
    "CLUSTERWRIGHT_AGENT__TOKEN_FILE": "/var/run/token",
    "CLUSTERWRIGHT_AGENT__STATE_DIR": "/var/lib/clusterwright",
}
FILE = """
cluster = "example"
[git]
url = "https://git.example/cluster.git"
[bot]
anything = 1
[agent]
node = "gpu-01"
bot_url = "https://bot.example:8443"
token_file = "/var/run/token"
state_dir = "/var/lib/clusterwright"
report_interval_seconds = 15
"""


def write(directory: Path, text: str) -> Path:
    file = directory / "settings.toml"
    file.write_text(text)
    return file


def error(file: Path | None, environment: dict[str, str]) -> str:
    with pytest.raises(AgentSettingsError) as caught:
        load(file, environment)
    return str(caught.value)


def test_the_environment_alone_is_enough() -> None:
    settings = load(None, {**GOOD, "CLUSTERWRIGHT_AGENT__TIMEOUT_SECONDS": "2.5", "PATH": "/bin"})
    assert (settings.node, settings.timeout_seconds) == ("gpu-01", 2.5)
    assert settings.kernel_log_path == Path("/dev/kmsg")


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = write(tmp_path, FILE)
    assert load(file, {}).report_interval_seconds == 15
    named = {"CLUSTERWRIGHT_CONFIG": str(file), "CLUSTERWRIGHT_AGENT__REPORT_INTERVAL_SECONDS": "20"}
    assert load(None, named).report_interval_seconds == 20


def test_a_root_moves_the_kernel_log() -> None:
    settings = load(None, {**GOOD, "CLUSTERWRIGHT_AGENT__ROOT": "/host"})
    assert settings.kernel_log_path == Path("/host/dev/kmsg")


def test_what_the_kubelet_sets_for_services_is_passed_over() -> None:
    links = {
        "CLUSTERWRIGHT_BOT_SERVICE_HOST": "10.0.0.1",
        "CLUSTERWRIGHT_BOT_SERVICE_PORT": "8443",
        "CLUSTERWRIGHT_BOT_SERVICE_PORT_HTTPS": "8443",
        "CLUSTERWRIGHT_BOT_PORT": "tcp://10.0.0.1:8443",
        "CLUSTERWRIGHT_BOT_PORT_8443_TCP": "tcp://10.0.0.1:8443",
        "CLUSTERWRIGHT_BOT_PORT_8443_TCP_ADDR": "10.0.0.1",
    }
    assert load(None, {**GOOD, **links}).node == "gpu-01"


def test_variables_of_the_other_programs_are_passed_over() -> None:
    assert (
        load(None, {**GOOD, "CLUSTERWRIGHT_BOT__LISTEN": "x", "CLUSTERWRIGHT_CLUSTER": "y"}).node == "gpu-01"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"CLUSTERWRIGHT_AGENT__NODEE": "x"}, "environment: CLUSTERWRIGHT_AGENT__NODEE: unknown key"),
        ({"CLUSTERWRIGHT_AGNET__NODE": "x"}, "environment: CLUSTERWRIGHT_AGNET__NODE: unknown variable"),
        (
            {"CLUSTERWRIGHT_AGENT__TIMEOUT_SECONDS": "soon"},
            "environment: CLUSTERWRIGHT_AGENT__TIMEOUT_SECONDS: Expected `float`, got `str`",
        ),
        (
            {"CLUSTERWRIGHT_AGENT__TIMEOUT_SECONDS": "0"},
            "environment: CLUSTERWRIGHT_AGENT__TIMEOUT_SECONDS: Expected `float` > 0.0",
        ),
        (
            {"CLUSTERWRIGHT_AGENT__BOT_URL": "bot:8443"},
            "environment: CLUSTERWRIGHT_AGENT__BOT_URL: Expected `str` matching",
        ),
        (
            {"CLUSTERWRIGHT_AGENT__NODE": ""},
            "environment: CLUSTERWRIGHT_AGENT__NODE: Expected `str` of length >= 1",
        ),
    ],
)
def test_a_wrong_variable_is_named(change: dict[str, str], says: str) -> None:
    assert error(None, {**GOOD, **change}).startswith(says)


def test_a_missing_key_says_how_to_set_it() -> None:
    environment = {name: value for name, value in GOOD.items() if not name.endswith("NODE")}
    assert error(None, environment) == (
        "environment: agent.node is missing; set it or CLUSTERWRIGHT_AGENT__NODE"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FILE + "colour = 1", ": agent.colour: unknown key; known are "),
        (FILE + "[agnet]", ": agnet: unknown key; known are "),
        (FILE.replace('"gpu-01"', "7"), ": agent.node: Expected `str`, got `int`"),
        (FILE.replace("= 15", '= "soon"'), ": agent.report_interval_seconds: Expected `float`, got `str`"),
        (FILE.replace('"/var/run/token"', "7"), ": agent.token_file: Expected a path"),
        ("agent = 7", ": agent: must be a table; write [agent]"),
        ("[agent", ": is not TOML ("),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), ": is not TOML ("),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, says: str) -> None:
    file = write(tmp_path, text)
    assert error(file, {}).startswith(f"{file}{says}")


def test_a_file_that_is_not_there_is_named() -> None:
    assert error(Path("/nowhere/a.toml"), {}) == "/nowhere/a.toml: cannot be read (No such file or directory)"
