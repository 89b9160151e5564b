"""The manifests travel with the program, and what they tell people to write is what the programs read."""

import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot import settings as bot_settings
from checks.agent import settings as agent_settings
from reconciler import settings as reconciler_settings
from reconciler.config import reader
from reconciler.config.schema import Config, RepairPolicy
from tests.lab import manifests

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"


def test_the_wheel_carries_every_manifest_and_catalog(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = [*MANIFESTS.rglob("*.yaml"), *MANIFESTS.rglob("*.toml"), *(ROOT / "checks").rglob("*.csv")]
    assert {str(each.relative_to(ROOT)) for each in wanted} <= packed
    assert not [name for name in packed if name.startswith("tests/")]


def test_the_cluster_template_is_a_valid_configuration() -> None:
    template = MANIFESTS / "cluster-template"
    read = reader.read({each.name: each.read_bytes() for each in template.glob("*.yaml")})
    assert isinstance(read, Config), str(read)
    assert [each.email for each in read.approvers] == ["approver@example.com"]
    assert read.policy == RepairPolicy(), "the template shows the defaults"


@pytest.mark.parametrize("file", ["base/clusterwright.toml", "overlays/example/clusterwright.toml"])
def test_the_settings_in_the_manifests_are_accepted_by_each_program(file: str) -> None:
    path = MANIFESTS / file
    assert reconciler_settings.load(reconciler_settings.ReconcilerSettings, path).git.backend == "github"
    assert reconciler_settings.load(bot_settings.BotSettings, path).bot.address == ("0.0.0.0", 8443)
    agent = agent_settings.load(path, {"CLUSTERWRIGHT_AGENT__NODE": "gpu-01"})
    assert (agent.node, str(agent.kernel_log_path)) == ("gpu-01", "/dev/kmsg")


@pytest.mark.parametrize(
    ("program", "kind", "tables"),
    [
        ("agent", "DaemonSet", ("agent",)),
        ("bot", "Deployment", ("git", "bot")),
        ("reconciler", "Deployment", ("git", "reconciler")),
    ],
)
def test_every_path_of_the_settings_is_mounted(program: str, kind: str, tables: tuple[str, ...]) -> None:
    text = (MANIFESTS / "base" / "clusterwright.toml").read_text()
    own = {name: table for name, table in tomllib.loads(text).items() if name in tables}
    pod = manifests.find(kind, f"clusterwright-{program}")["spec"]["template"]["spec"]
    mounts = [Path(each["mountPath"]) for each in pod["containers"][0]["volumeMounts"]]
    named = [Path(value) for value in values(own) if value.startswith("/")]
    assert named
    assert [path for path in named if not any(path.is_relative_to(mount) for mount in mounts)] == []


def values(table: dict[str, Any]) -> Iterator[str]:
    for value in table.values():
        if isinstance(value, dict):
            yield from values(value)
        elif isinstance(value, str):
            yield value
