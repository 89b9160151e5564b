"""What the bot is told at start: units, defaults, and one line for each thing that is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.settings import BotSettings
from reconciler.settings import SettingsError, load

GOOD = """
cluster = "example"
[git]
url = "/srv/cluster.git"
mirror = "{dir}/mirror"
backend = "git"
[bot]
listen = "127.0.0.1:8443"
[bot.slack]
channel = "C0EXAMPLE"
bot_token_file = "{dir}/bot-token"
app_token_file = "{dir}/app-token"
[agent]
bot_url = "http://127.0.0.1:8443"
"""


def write(directory: Path, text: str = GOOD) -> Path:
    for name in ("bot-token", "app-token"):
        (directory / name).write_text("example-not-a-token")
    file = directory / "clusterwright.toml"
    file.write_text(text.replace("{dir}", str(directory)))
    return file


def complaint(directory: Path, text: str) -> str:
    with pytest.raises(SettingsError) as found:
        load(BotSettings, write(directory, text))
    return str(found.value)


def test_defaults_are_the_products_and_other_programs_tables_are_passed_over(tmp_path: Path) -> None:
    own = load(BotSettings, write(tmp_path)).bot
    assert (own.report_interval_seconds, own.clear_after_seconds, own.offer_lifetime_seconds) == (
        30,
        300,
        3600,
    )
    assert own.address == ("127.0.0.1", 8443)
    assert own.slack.base_url == "https://slack.com/api/"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('listen = "127.0.0.1:8443"', 'lisen = "x"', "bot.lisen: unknown key"),
        ('listen = "127.0.0.1:8443"', 'listen = "localhost"', "bot.listen: must be an address and a port"),
        ('listen = "127.0.0.1:8443"', 'listen = "127.0.0.1:99999"', "is not a port"),
        ('listen = "127.0.0.1:8443"', "clear_after_seconds = 0", "bot.clear_after_seconds"),
        ('listen = "127.0.0.1:8443"', 'tls_cert_file = "x"', "belong together"),
        ('channel = "C0EXAMPLE"', 'channel = "#incidents"', "bot.slack.channel"),
        ('channel = "C0EXAMPLE"', "", "bot.slack.channel: is missing"),
        ('app_token_file = "{dir}/app-token"', "", "app_token_file is missing"),
        ('channel = "C0EXAMPLE"', 'channel = "C0EXAMPLE"\nmode = "http"', "signing_secret_file is missing"),
        (
            'channel = "C0EXAMPLE"',
            'channel = "C0EXAMPLE"\nbase_url = "https://slack.com/api"',
            "bot.slack.base_url",
        ),
        ("[agent]", "[agnet]", "agnet: unknown key"),
    ],
)
def test_each_mistake_is_named_with_its_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in complaint(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda directory: (directory / "bot-token").unlink(), "bot.slack.bot_token_file"),
        (lambda directory: (directory / "app-token").write_text(" \n"), "is empty"),
    ],
)
def test_a_secret_that_cannot_be_used_ends_the_start_with_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], break_it: object, said: str
) -> None:
    file = write(tmp_path)
    assert callable(break_it)
    break_it(tmp_path)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-m", "bot", "--config", str(file)],
        capture_output=True, text=True, timeout=60, env=environment, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_unknown_settings_end_the_start_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(write(tmp_path, GOOD.replace("listen", "lisen")))]) == 2
    assert "bot.lisen: unknown key" in capsys.readouterr().err
