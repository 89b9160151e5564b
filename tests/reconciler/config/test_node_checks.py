"""`kind: NodeChecks`: from a cluster's repository to the file that an agent reads, and every error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from checks import registry
from checks.policy import Policy, decode
from reconciler.config.lint import lint
from reconciler.config.reader import ConfigErrors, read
from reconciler.config.schema import Config
from reconciler.render import node_checks

TEMPLATE = Path(__file__).parents[3] / "manifests/cluster-template"

HEAD = "apiVersion: clusterwright.dev/v1alpha1\n"
CLUSTER = f"""{HEAD}kind: Cluster
metadata: {{name: example}}
spec:
  pools:
    - {{name: h100}}
    - {{name: cpu, gpusPerNode: 0}}
---
{HEAD}kind: Access
metadata: {{name: example}}
spec: {{}}
"""
CHECKS = f"""{HEAD}kind: NodeChecks
metadata:
  name: example
spec:
"""


def config(checks: str = "") -> Config | ConfigErrors:
    files = {"cluster.yaml": CLUSTER.encode()}
    return read({**files, "node-checks.yaml": (CHECKS + checks).encode()} if checks else files)


def policies(checks: str) -> dict[str, Policy]:
    """Return what an agent of each pool reads."""
    found = config(checks)
    assert isinstance(found, Config), found
    data = node_checks.config_map(found, "clusterwright")["data"]
    return {name.removesuffix(".json"): decode(each.encode(), registry.NAMES) for name, each in data.items()}


def test_a_pool_has_what_is_written_for_it_and_another_what_is_written_for_all() -> None:
    found = policies(
        "  default: {disabled: [clock]}\n"
        "  pools:\n    h100: {expected: {ibPorts: [mlx5_0], ibRateGbps: 400}, host: {zombies: 7}}\n"
    )
    assert found["h100"].expected.ib_ports == ("mlx5_0",)
    assert (found["h100"].host.zombies, found["h100"].disabled) == (7, ())
    assert found["cpu"].disabled == ("clock",)


def test_the_pools_number_of_gpus_is_expected_unless_the_checks_name_another() -> None:
    found = policies("  pools: {h100: {expected: {gpus: 4}}}\n")
    assert {pool: each.expected.gpus for pool, each in found.items()} == {"h100": 4, "cpu": 0}


def test_without_node_checks_every_pool_has_the_defaults() -> None:
    found = policies("")
    assert found["h100"].host == Policy().host


def test_what_nobody_wrote_is_not_in_the_config_map() -> None:
    found = config("  pools: {h100: {host: {clockSeconds: 60}}}\n")
    assert isinstance(found, Config)
    data = node_checks.config_map(found, "clusterwright")["data"]
    assert json.loads(data["h100.json"]) == {"expected": {"gpus": 8}, "host": {"clockSeconds": 60.0}}


FAULTS = {
    "an unknown field": (
        "  pools:\n    h100:\n      expected:\n        gpu: 8\n",
        ["9: spec.pools.h100.expected.gpu: unknown field"],
    ),
    "a wrong type": (
        "  default:\n    host:\n      zombies: many\n",
        ["8: spec.default.host.zombies: Expected `int`, got `str`"],
    ),
    "out of range": (
        "  default:\n    host:\n      diskFreePercent: 0.0\n",
        ["8: spec.default.host.diskFreePercent: Expected `float` > 0.0"],
    ),
    "thresholds that contradict each other": (
        "  default:\n    host: {diskFreePercent: 50.5, diskClearPercent: 20}\n",
        ["7: spec.default.host: diskClearPercent is below diskFreePercent"],
    ),
    "an unknown check": (
        "  default:\n    disabled:\n      - clock\n      - clocks\n",
        ["9: spec.default.disabled.1: clocks: no such check; there are"],
    ),
    "an unknown pool": (
        "  pools:\n    a200: {}\n",
        ["7: spec.pools.a200: no such pool; known are cpu, h100"],
    ),
    "a list where a pool should be": ("  pools:\n    h100: []\n", ["7: spec.pools.h100: must be a mapping"]),
    "a service without its process": (
        "  default:\n    services:\n      - name: slurmd\n",
        ["8: spec.default.services.0: Object missing required field `process`"],
    ),
    "several in several pools": (
        (
            "  default:\n    gpu: {xyz: 1}\n    host:\n      zombies: -1\n      mountPolls: 0\n"
            "  pools:\n    h100:\n      disabled: [nope]\n      expected:\n        gpuDevice: H100\n"
        ),
        [
            "7: spec.default.gpu.xyz: unknown field",
            "9: spec.default.host.zombies: Expected `int` >= 0",
            "10: spec.default.host.mountPolls: Expected `int` >= 1",
            "13: spec.pools.h100.disabled.0: nope: no such check",
            "15: spec.pools.h100.expected.gpuDevice: Expected `str` matching regex",
        ],
    ),
}


@pytest.mark.parametrize("case", list(FAULTS))
def test_every_error_names_its_line(case: str) -> None:
    written, said = FAULTS[case]
    found = config(written)
    assert isinstance(found, ConfigErrors)
    assert len(found.faults) == len(said), str(found)
    for fault, text in zip(found.faults, said, strict=True):
        assert str(fault).startswith(f"node-checks.yaml:{text}")


def test_lint_finds_nothing_in_the_template_and_everything_in_a_broken_copy(tmp_path: Path) -> None:
    assert lint(TEMPLATE) == ()
    for each in TEMPLATE.glob("*.yaml"):
        (tmp_path / each.name).write_text(each.read_text().replace("name: example", "nam: example"))
    (tmp_path / "directory.yaml").mkdir()
    files = list(dict.fromkeys(each.file for each in lint(tmp_path)))
    assert files == [
        "directory.yaml",
        "access.yaml",
        "cluster.yaml",
        "node-checks.yaml",
        "repair-policy.yaml",
    ]


def clusterwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bot.cli", *arguments]
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def test_the_lint_command_says_file_and_line_and_fails(tmp_path: Path) -> None:
    good = clusterwright("lint", str(TEMPLATE))
    assert (good.returncode, good.stderr) == (0, "")
    (tmp_path / "cluster.yaml").write_text(CLUSTER.replace("gpusPerNode: 0", "gpusPerNode: many"))
    bad = clusterwright("lint", str(tmp_path))
    assert bad.returncode == 1
    assert bad.stdout.startswith("cluster.yaml:7: spec.pools.1.gpusPerNode: ")
    machine = clusterwright("lint", str(tmp_path), "--format", "json")
    assert machine.returncode == 1
    (fault,) = json.loads(machine.stdout)
    assert (fault["file"], fault["line"]) == ("cluster.yaml", 7)
    assert json.loads(clusterwright("lint", str(TEMPLATE), "--format", "json").stdout) == []


@pytest.mark.parametrize("arguments", [("/nowhere",), (), (".", "--format", "xml")])
def test_wrong_use_of_lint_is_one_line(arguments: tuple[str, ...]) -> None:
    wrong = clusterwright("lint", *arguments)
    assert wrong.returncode == 2
    assert len(wrong.stderr.splitlines()) == 1
    assert "Traceback" not in wrong.stderr
