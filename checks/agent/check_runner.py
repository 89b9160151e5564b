"""Check runner: the GPU sampler and every check as jobs, and what they find put into the node's state."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from checks.agent.node_state import NodeState
from checks.agent.scheduler import JOB_SECONDS, Job
from checks.agent.settings import AgentSettings
from checks.agent.ticker import Ticker
from checks.check import Check, CheckContext, Unobservable, failed, run_check
from checks.debounce import Instant
from checks.gpu.sampler import EVERY_SECONDS, GpuSampler
from checks.policy import Policy
from checks.registry import CHECKS

if TYPE_CHECKING:
    from checks.gpu_sample import GpuSnapshot

_TIMED_OUT = Unobservable(f"check timed out after {JOB_SECONDS:.0f} s")


class CheckRunner:
    """Runs checks under the policy that `policy` returns, and records their results in `state`."""

    def __init__(
        self,
        settings: AgentSettings,
        sampler: GpuSampler,
        state: NodeState,
        policy: Callable[[], Policy],
        ticker: Ticker,
    ) -> None:
        self._settings = settings
        self._sampler = sampler
        self._state = state
        self._policy = policy
        self._ticker = ticker
        self._gpus: GpuSnapshot | Unobservable | None = None

    def jobs(self) -> tuple[Job, ...]:
        """Return the sampler, whose sample the checks of the same tick judge, and then the checks."""
        sampling = Job("gpu-sampler", EVERY_SECONDS, self._sample, self._sampling_timed_out)
        return (sampling, *map(self._job, CHECKS))

    def restart(self) -> None:
        """Drop what was sampled: it belongs to the boot before this one."""
        self._gpus = None

    def _job(self, check: Check) -> Job:
        run, timed_out = partial(self._run, check), partial(self._timed_out, check)
        return Job(check.name, check.every_seconds, run, timed_out)

    def _sample(self, at: Instant) -> None:
        try:
            self._gpus = gpus = self._sampler.sample(self._context(at))
        except Exception as error:  # noqa: BLE001 - without a sample the checks that need it are blind
            self._gpus = failed(error)
        else:
            self._state.kernel.record_gpus(gpus)

    def _sampling_timed_out(self, _: Instant) -> None:
        self._gpus = _TIMED_OUT

    def _run(self, check: Check, at: Instant) -> None:
        if check.name in self._policy().disabled:
            self._state.drop_check(check.name)
            return
        context = msgspec.structs.replace(self._context(at), past=self._state.checks.past(check.name))
        result = run_check(check, context)
        self._state.record_result(check, result, self._ticker.now())

    def _timed_out(self, check: Check, at: Instant) -> None:
        self._state.record_result(check, _TIMED_OUT, at)

    def _context(self, at: Instant) -> CheckContext:
        facts = msgspec.structs.replace(self._state.facts(), gpus=self._gpus, bot_url=self._settings.bot_url)
        return CheckContext(
            root=self._settings.root, now=at.wall, uptime=at.uptime, policy=self._policy(), facts=facts
        )
