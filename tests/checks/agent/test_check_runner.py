"""The check runner: what the checks of a node are given, and what becomes of their results."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.agent.check_runner import CheckRunner
from checks.agent.node_state import NodeState
from checks.agent.settings import AgentSettings
from checks.agent.state_file import StateFile
from checks.agent.ticker import TICK_SECONDS, Ticker
from checks.check import Check, CheckContext, Unobservable, run_check
from checks.gpu import presence
from checks.gpu.sampler import GpuSampler
from checks.policy import Expected, Policy
from checks.registry import CHECKS
from tests.checks.agent.stepped import SteppedRuntime
from tests.lab import hardware


class Site:
    """A healthy server whose jobs a test runs one by one."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "root"
        hardware.furnish(self.root, ())
        settings = AgentSettings(
            node="gpu-01",
            bot_url="https://bot.invalid:8443",
            token_file=directory / "token",
            state_dir=directory,
            root=self.root,
        )
        self.runtime = SteppedRuntime()
        self.ticker = Ticker(self.runtime, random.Random(1), TICK_SECONDS)
        self.state = NodeState(StateFile(directory), "b1")
        self.policy = Policy()
        # Without a library in it the child can only say that there is none.
        self.sampler = GpuSampler({"LD_LIBRARY_PATH": str(directory)}, deadline_seconds=20.0)
        self.runner = CheckRunner(settings, self.sampler, self.state, lambda: self.policy, self.ticker)
        self.jobs = {each.name: each for each in self.runner.jobs()}

    def run(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self.jobs[name].run(self.ticker.now())
            self.runtime.advance(self.jobs[name].every_seconds)

    @property
    def codes(self) -> set[str]:
        findings, blind_spots = self.state.findings()
        return {each.code for each in (*findings, *blind_spots)}

    @property
    def blind(self) -> dict[str | None, str]:
        return {each.device: each.evidence for each in self.state.findings()[1]}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.sampler.close()


def test_the_sampler_runs_before_the_checks_that_judge_its_sample(site: Site) -> None:
    assert list(site.jobs) == ["gpu-sampler", *(each.name for each in CHECKS)]


def test_a_check_whose_sample_is_missing_is_blind_and_says_so(site: Site) -> None:
    site.run("presence", 3)
    assert site.blind == {"presence": "the GPUs have not been sampled yet"}
    site.run("gpu-sampler")
    site.run("presence")
    assert site.blind == {}


def test_a_sample_is_what_gpu_checks_judge_until_another_boot_begins(site: Site) -> None:
    site.policy = Policy(expected=Expected(gpus=8))
    site.run("gpu-sampler")
    site.run("presence", 2)
    assert site.codes == {"gpu-count"}
    site.runner.restart()
    site.run("presence", 3)
    assert site.blind == {"presence": "the GPUs have not been sampled yet"}


def test_a_sampler_that_hangs_makes_gpu_checks_blind(site: Site) -> None:
    site.run("gpu-sampler")
    site.jobs["gpu-sampler"].timed_out(site.ticker.now())
    site.run("presence", 3)
    assert site.blind == {"presence": "check timed out after 26 s"}


def test_a_check_that_times_out_three_times_is_a_blind_spot(site: Site) -> None:
    for _ in range(3):
        site.jobs["nvme"].timed_out(site.ticker.now())
        site.runtime.advance(60.0)
    assert site.blind == {"nvme": "check timed out after 26 s"}


def test_a_check_that_is_switched_off_does_not_run_and_loses_its_findings(site: Site) -> None:
    site.policy = Policy(expected=Expected(cpus=256))
    site.run("cpu", 2)
    assert site.codes == {"cpu-missing"}
    site.policy = Policy(expected=Expected(cpus=256), disabled=("cpu",))
    before = site.state.revision
    site.run("cpu")
    assert site.codes == set()
    assert site.state.revision != before, "a report is due"
    site.run("cpu", 3)
    assert site.codes == set()


def test_a_check_knows_the_bots_address_and_what_it_read_before(site: Site) -> None:
    site.run("probes", 3)
    assert site.codes == {"dns-fails"}
    dimm = "sys/devices/system/edac/mc/mc0/dimm1/dimm_ce_count"
    site.run("memory-errors")
    hardware.write(site.root, dimm, "5000\n")
    site.run("memory-errors")
    assert site.codes == {"dns-fails", "edac-ce-rate"}


def test_a_check_that_raises_could_not_observe_and_says_where() -> None:
    def observe(_: CheckContext) -> Unobservable:
        raise ValueError("7 is no number")

    result = run_check(Check(name="bad", about="", observe=observe), context())
    assert isinstance(result, Unobservable)
    assert result.reason.startswith("ValueError: 7 is no number (test_check_runner.py:")


def test_a_gpu_check_without_a_sample_could_not_observe() -> None:
    assert run_check(presence.CHECK, context()) == Unobservable("the GPUs have not been sampled yet")


def context() -> CheckContext:
    return CheckContext(root=Path("/nowhere"), now=0.0, uptime=7200.0, policy=Policy())
