import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.settings import ReconcilerSettings, SettingsError, load

GOOD = """
cluster = "example"

[git]
url = "https://git.example.com/cluster.git"
mirror = "/tmp/mirror"
repository = "example/cluster"

[agent]
anything = 1

[bot.slack]
anything = 1

[reconciler]
bot_url = "http://127.0.0.1:1"
bot_token_file = "/tmp/token"
"""


@pytest.fixture(autouse=True)
def _no_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("CLUSTERWRIGHT_")]:
        monkeypatch.delenv(name)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    return file


def test_a_file_gives_its_own_tables_and_passes_over_those_of_other_programs(tmp_path: Path) -> None:
    settings = load(ReconcilerSettings, written(tmp_path, GOOD))
    assert settings.git.repository == "example/cluster"
    assert settings.kubernetes.namespace == "clusterwright"
    assert settings.reconciler.pass_seconds == 2.0


def test_the_environment_overrides_the_file_key_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERWRIGHT_GIT__URL", "https://other.example.com/cluster.git")
    monkeypatch.setenv("CLUSTERWRIGHT_RECONCILER__REDFISH__TIMEOUT_SECONDS", "3")
    monkeypatch.setenv("CLUSTERWRIGHT_AGENT__NODE", "gpu-01")
    settings = load(ReconcilerSettings, written(tmp_path, GOOD))
    assert settings.git.url == "https://other.example.com/cluster.git"
    assert settings.git.repository == "example/cluster"
    assert settings.reconciler.redfish.timeout_seconds == 3.0


def test_the_file_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTERWRIGHT_CONFIG", str(written(tmp_path, GOOD)))
    assert load(ReconcilerSettings).cluster == "example"


BAD = {
    "unknown key": ('pass_seconds = 1\nfoo = "x"\n', "{file}: reconciler.foo: unknown key"),
    "unknown table": (
        "[gti]\n",
        "{file}: gti: unknown key; known are agent, bot, cluster, git, kubernetes, reconciler",
    ),
    "unknown key below": ("[reconciler.redfish]\nuser = 1\n", "{file}: reconciler.redfish.user: unknown key"),
    "no time": ("pass_seconds = 0\n", "{file}: reconciler.pass_seconds: Input should be greater than 0"),
    "no number": (
        'pass_seconds = "soon"\n',
        "{file}: reconciler.pass_seconds: Input should be a valid number, unable to parse string as a number",
    ),
    "no TOML": ("pass_seconds = \n", "{file}: is not TOML (Invalid value"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_in_the_file_is_named_with_key_and_file(tmp_path: Path, name: str) -> None:
    text, said = BAD[name]
    file = written(tmp_path, GOOD + text)
    with pytest.raises(SettingsError) as caught:
        load(ReconcilerSettings, file)
    assert str(caught.value).startswith(said.format(file=file))
    assert "\n" not in str(caught.value)


BAD_VARIABLES = {
    "unknown variable": ("GTI__URL", "x", "environment: CLUSTERWRIGHT_GTI__URL: unknown variable; after"),
    "unknown key": ("GIT__FOO", "x", "environment: CLUSTERWRIGHT_GIT__FOO: unknown key"),
    "no number": ("RECONCILER__WORKERS", "x", "environment: CLUSTERWRIGHT_RECONCILER__WORKERS: Input should"),
    "no table": ("GIT", "x", "environment: "),
}


@pytest.mark.parametrize("name", BAD_VARIABLES)
def test_what_is_wrong_in_the_environment_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    variable, value, said = BAD_VARIABLES[name]
    monkeypatch.setenv(f"CLUSTERWRIGHT_{variable}", value)
    with pytest.raises(SettingsError) as caught:
        load(ReconcilerSettings, written(tmp_path, GOOD))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_every_missing_key_is_named_with_the_variable_that_would_set_it(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    with pytest.raises(SettingsError) as caught:
        load(ReconcilerSettings, file)
    assert str(caught.value).splitlines() == [
        f"{file}: {key}: is missing; set it in the file or as CLUSTERWRIGHT_{key.upper()}"
        for key in ("cluster", "git", "reconciler")
    ]


def test_the_github_back_end_asks_for_its_repository(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD.replace('repository = "example/cluster"', ""))
    with pytest.raises(SettingsError, match='git: repository is missing; backend "github" needs it'):
        load(ReconcilerSettings, file)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load(ReconcilerSettings, tmp_path / "absent.toml")


STARTS = {
    "unknown key": (GOOD + "foo = 1\n", "reconciler.foo: unknown key"),
    "no kubeconfig": (
        GOOD + '[kubernetes]\nkubeconfig = "/nonexistent"\n',
        "kubernetes.kubeconfig: /nonexistent",
    ),
    "no manifests": (
        GOOD + 'manifests_dir = "/nonexistent"\n',
        "manifests_dir: /nonexistent: no definitions",
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_the_program_ends_with_2_and_one_line_when_its_settings_cannot_be_used(
    tmp_path: Path, name: str
) -> None:
    text, said = STARTS[name]
    command = [sys.executable, "-m", "reconciler", "--config", str(written(tmp_path, text))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert said in ended.stderr
