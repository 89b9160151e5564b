"""The agent's own process on a node with GPUs, over the stand-in library; and the bench that measures it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checks.agent.harness import Bot
from tests.checks.gpu.harness import ONE, TWO
from tests.lab.nvml.bus import fall_off, plug, unplug, use
from tools.bench.process import Usage

PATIENCE = 30.0


class Node:
    """An agent of a node; what it knows is read from its saved state."""

    def __init__(self, directory: Path, environment: dict[str, str], bot_url: str) -> None:
        self.root, self.state = directory / "node", directory / "state"
        for path, text in (("proc/sys/kernel/random/boot_id", "example-boot\n"), ("dev/kmsg", "")):
            (self.root / path).parent.mkdir(parents=True)
            (self.root / path).write_text(text)
        (directory / "token").write_text("example\n")
        self.log = directory / "agent.log"
        self.environment = {
            **environment,
            "CLUSTERWRIGHT_AGENT__NODE": "gpu-01",
            "CLUSTERWRIGHT_AGENT__BOT_URL": bot_url,
            "CLUSTERWRIGHT_AGENT__TOKEN_FILE": str(directory / "token"),
            "CLUSTERWRIGHT_AGENT__ROOT": str(self.root),
            "CLUSTERWRIGHT_AGENT__STATE_DIR": str(self.state),
            "CLUSTERWRIGHT_AGENT__REPORT_INTERVAL_SECONDS": "1",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "checks"], env=self.environment, stderr=log, stdout=log
            )

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(PATIENCE) == 0, self.log.read_text()
            self.process = None

    def children(self) -> list[int]:
        assert self.process is not None
        return [each.pid for each in Usage(self.process.pid).children()]

    def looked(self) -> dict[str, dict[str, Any]]:
        """Return the memory of each check that has looked."""
        try:
            return dict(json.loads((self.state / "agent-state.json").read_text())["checks"])
        except (OSError, ValueError):
            return {}

    def raised(self) -> dict[str, dict[str, Any]]:
        """Return the memory of each check that has raised something."""
        return {name: each for name, each in self.looked().items() if '"raised": true' in json.dumps(each)}


def wait(what: Callable[[], object], node: Node) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, node.log.read_text()
        time.sleep(0.05)


@pytest.fixture
def node(tmp_path: Path, environment: dict[str, str], bot: Bot) -> Iterator[Node]:
    node = Node(tmp_path, environment, bot.url)
    plug(node.root, ONE)
    plug(node.root, TWO)
    yield node
    node.stop()


def test_an_agent_tells_of_a_gpu_off_the_bus_and_ends_its_child_with_itself(node: Node) -> None:
    fall_off(node.root, TWO)
    node.start()
    wait(lambda: "presence" in node.raised(), node)
    wait(node.children, node)
    [child] = node.children()
    node.stop()
    until = time.monotonic() + 30
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_agent_on_a_node_without_gpus_is_one_process(node: Node) -> None:
    unplug(node.root, ONE)
    unplug(node.root, TWO)
    node.start()
    wait(lambda: "presence" in node.looked(), node)
    assert node.children() == []
    assert "presence" not in node.raised()


def bench(*arguments: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "tools.bench.gpu", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_the_bench_measures_every_call(node: Node, environment: dict[str, str], tmp_path: Path) -> None:
    use(node.root, 0)
    out = tmp_path / "artifacts/bench-gpu.json"
    told = bench(
        *("--rounds", "10", "--agent-minutes", "0", "--root", str(node.root), "--out", str(out)),
        environment=environment,
    )
    assert "driver 570.172.08" in told
    assert "sys/module/nvidia_uvm/refcnt with our NVML open: 0" in told
    calls = json.loads(out.read_text())["idle"]["calls"]
    wanted = {"field 230", "SRAM status", "memory in use", "InfoROM validation"}
    assert wanted <= {each["name"] for each in calls}
    assert all(0 < each["median"] <= each["p99"] <= each["longest"] for each in calls)


def test_the_bench_says_plainly_that_there_is_no_gpu(tmp_path: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"")
    told = bench(environment=environment)
    assert told == (
        "bench-gpu: no GPU to measure on this machine: nvmlInitWithFlags: library not found (12)\n"
    )
