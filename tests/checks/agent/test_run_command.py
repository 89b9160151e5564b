"""`clusterwright checks`: one look at a node, for people and for scripts."""

import io
import json
from pathlib import Path

import pytest

from checks import registry
from checks.agent.run_command import main
from tests.lab import hardware

GPUS = ("0000:1b:00.0",)


def run(*arguments: str) -> tuple[int, str]:
    out = io.BytesIO()
    code = main(list(arguments), out)
    return code, out.getvalue().decode()


@pytest.fixture
def server(tmp_path: Path) -> Path:
    hardware.furnish(tmp_path, GPUS)
    return tmp_path


def test_a_healthy_node_is_well(server: Path) -> None:
    code, text = run("run", "nvme", "ib-state", "services", "limits", "--root", str(server))
    assert code == 0
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["well", "ib-state"],
        ["well", "nvme"],
        ["well", "services"],
        ["well", "limits"],
    ]


def test_what_is_wrong_now_is_printed_without_an_agents_patience(server: Path) -> None:
    hardware.write(server, "sys/class/nvme/nvme3/state", "dead\n")
    code, text = run("run", "nvme", "--root", str(server))
    assert code == 1
    assert text == "sick   nvme                 critical/failover  The NVMe drive EXAMPLE0003 is dead.\n"
    code, text = run("run", "nvme", "--root", str(server), "--format", "json")
    (result,) = json.loads(text)
    assert (code, result["state"], result["symptoms"][0]["code"]) == (1, "sick", "nvme-dead")


def test_what_cannot_be_looked_at_is_not_well(tmp_path: Path) -> None:
    code, text = run("run", "memory", "mounts", "presence", "--root", str(tmp_path))
    assert code == 1
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["blind", "presence"],
        ["blind", "memory"],
        ["blind", "mounts"],
    ]


def test_a_policy_is_read_as_the_agent_reads_it(server: Path, tmp_path: Path) -> None:
    policy = tmp_path / "h100.json"
    policy.write_text('{"expected": {"cpus": 256}}')
    code, text = run("run", "cpu", "--root", str(server), "--policy", str(policy))
    assert code == 1
    assert "192 of 256" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "see clusterwright checks --help"),
        (("run", "nope"), "no such check: nope"),
        (("run", "--policy", "/nowhere"), "--policy /nowhere: cannot be read"),
        (("run", "--format", "xml"), "invalid choice"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == (2, "")
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_the_list_names_every_check_that_can_look_once() -> None:
    code, text = run("list")
    assert code == 0
    assert {line.split()[0] for line in text.splitlines()} == registry.NAMES - {"boot"}
