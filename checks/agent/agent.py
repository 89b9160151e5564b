"""The agent: follow the kernel log, run the checks, and report what both say to the bot.

One thread reads the kernel log, one runs the checks, and one reports. They share the node's state.
"""

import logging
import os
import random
import signal
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from checks.agent.check_runner import CheckRunner
from checks.agent.health import Health, healthz, metrics
from checks.agent.http_server import HttpServer
from checks.agent.node_state import NodeState
from checks.agent.policy_file import PolicyFile
from checks.agent.publish import PostResult, Publisher
from checks.agent.runtime import Runtime, SystemRuntime
from checks.agent.scheduler import Scheduler
from checks.agent.self_metrics import SelfMetrics
from checks.agent.settings import AgentSettings
from checks.agent.state_file import StateFile
from checks.agent.ticker import TICK_SECONDS, Ticker
from checks.debounce import Instant
from checks.gpu.inventory import InventoryCache
from checks.gpu.nvml_process import DEADLINE_SECONDS
from checks.gpu.sampler import GpuSampler
from checks.host import critical_devices
from checks.host.files import text
from checks.kernel.parse import storage
from checks.kernel.parse.event import KernelEvent
from checks.kernel.parse.reader import KernelLogReader
from checks.kernel.source.kmsg import KernelLog, KernelRecord, KmsgFollower, LostRecords
from checks.kernel.source.line import record_line
from checks.kernel.source.prefilter import KERNEL
from checks.registry import NAMES
from checks.report import NodeReport, ReportAccepted
from checks.report_delta import ReportRejected

POOL_SECONDS = 60.0
"""How long a new agent waits to be told its pool, on which depends which checks are switched off."""

STOP_SECONDS = 2.0
"""Wait at the end for a report that is under way."""

BOOT_ID = "proc/sys/kernel/random/boot_id"
"""Where the kernel shows the id of the running boot, under the root."""

log = logging.getLogger("checks.agent.agent")


class Agent:
    """One node's agent. `chance` spreads the agents of a cluster over time."""

    def __init__(self, settings: AgentSettings, runtime: Runtime, chance: random.Random) -> None:
        self._settings = settings
        self._runtime = runtime
        self._stopping = threading.Event()
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._state = NodeState(StateFile(settings.state_dir), read_boot_id(settings.root))
        self._reported = self._state.revision
        self._reader = KernelLogReader(self._state.kernel.branch)
        kernel_log = KernelLog(settings.kernel_log_path, settings.poll_seconds, self._wake)
        self._follower = KmsgFollower(kernel_log, KERNEL, self._state.kernel.cursor)
        self._metrics = SelfMetrics(runtime.uptime)
        self._inventory = InventoryCache(settings.root)
        self._policy = PolicyFile(settings.policy_dir, NAMES)
        self._ticker = Ticker(runtime, chance, min(TICK_SECONDS, settings.report_interval_seconds))
        self._sampler = GpuSampler(os.environ, DEADLINE_SECONDS)
        self._runner = CheckRunner(
            settings, self._sampler, self._state, lambda: self._policy.current, self._ticker
        )
        self._scheduler = Scheduler(self._runner.jobs(), self._ticker, runtime, self._report_change)
        self._checks_due = runtime.uptime() + (0.0 if self._state.pool else POOL_SECONDS)
        self._publisher = Publisher(settings, self._compose, self._on_result, self._ticker, runtime)
        pages = {"/healthz": lambda: healthz(self._health()), "/metrics": lambda: metrics(self._health())}
        self._server = HttpServer(settings.health_listen, pages, runtime)

    def run(self) -> None:
        """Follow the log, check and report until stopped."""
        self.start()
        while not self._stopping.is_set():
            self.step()
        self.close()

    def start(self) -> None:
        """Start to report and to serve the health pages; the checks start in `step`."""
        log.info("agent of node %s started, boot %s", self._settings.node, self._state.boot_id)
        self._policy.refresh(self._state.pool)
        self._publisher.start()
        self._server.start()

    def step(self) -> None:
        """Read the kernel log, or wait for it until the next tick, and record what follows from it."""
        items = self._follower.read(self._ticker.wait_seconds())
        self._metrics.record_step()
        at = self._ticker.now()
        boot_id = read_boot_id(self._settings.root)
        # An id that cannot be read just now is not another boot (T12).
        if boot_id and boot_id != self._state.boot_id:
            self._restart(boot_id)
        else:
            self._record(items, at)
        self._state.blind_spots.record_log_trouble(self._follower.blind, at.wall)
        self._policy.refresh(self._state.pool)
        self._state.blind_spots.record_policy_trouble(self._policy.trouble, at.wall)
        if at.uptime >= self._checks_due:
            self._scheduler.start()
        self._scheduler.supervise()
        self._state.kernel.expire(at)
        self._state.blind_spots.expire(at)
        self._report_change()

    def stop(self) -> None:
        """End `run` soon; may be called from a signal handler or another thread."""
        self._stopping.set()
        os.write(self._waker, b"x")

    def close(self) -> None:
        """Save the state and end the threads."""
        self._server.stop()
        self._scheduler.stop()
        self._sampler.close()
        self._state.save()
        self._publisher.stop(STOP_SECONDS)
        self._follower.close()
        log.info("agent stopped")

    def _record(self, items: Iterable[KernelRecord | LostRecords], at: Instant) -> None:
        events: list[tuple[KernelEvent, Instant]] = []
        # At most once for a batch, and for most batches not at all.
        devices = cache(lambda: critical_devices.devices(self._settings.root))
        for item in items:
            if isinstance(item, LostRecords):
                self._state.blind_spots.record_lost(item, at.wall)
                continue
            # A live record was logged now, an older one as long ago as the kernel's own clock says (K7).
            age = 0.0 if item.live else max(0.0, at.uptime - item.header.usec / 1e6)
            logged = Instant(at.wall - age, at.uptime - age)
            events += [(storage.judge(event, devices), logged) for event in self._read(item)]
        self._state.kernel.record(events, self._follower.last, self._reader.branch)

    def _read(self, record: KernelRecord) -> list[KernelEvent]:
        line = record_line(record.header)
        events = self._reader.events(line, record.header.sequence) if line else []
        return [event.times(record.count) for event in events] if record.count > 1 else events

    def _restart(self, boot_id: str) -> None:
        log.info("another boot began: %s", boot_id)
        self._state.restart(boot_id)
        self._reader = KernelLogReader()
        self._follower.restart()
        self._runner.restart()
        self._scheduler.restart()

    def _report_change(self) -> None:
        """Have the publisher report what has changed. Called from the reading and the checking thread."""
        revision = self._state.revision
        if revision != self._reported:
            self._reported = revision
            self._publisher.change()

    def _compose(self) -> NodeReport:
        inventory = self._inventory.read(self._state.boot_id)
        return self._state.report(self._settings.node, inventory, self._runtime.wall())

    def _on_result(self, report: NodeReport, result: PostResult) -> None:
        self._metrics.record_report(result.status, accepted=result.accepted)
        match result.answer:
            case ReportAccepted() as accepted:
                self._state.record_answer(accepted)
                self._policy.refresh(self._state.pool)
                self._scheduler.start()
            case ReportRejected(held=int(held)):
                self._state.skip_to(held)
            case None if result.accepted:
                log.warning("the bot's answer cannot be read: %s", result.text[:200])
            case _ if result.overtaken:
                self._state.skip_to(int(report.sent_at))

    def _health(self) -> Health:
        findings, blind_spots = self._state.findings()
        gpus = self._inventory.read(self._state.boot_id).gpus
        return self._metrics.health(
            findings,
            blind_spots,
            sequence=self._follower.last,
            child=self._sampler.child_pid is not None if gpus else None,
        )


def read_boot_id(root: Path) -> str:
    """Return the id of the running boot under `root`; empty while it cannot be read."""
    return text(root / BOOT_ID) or ""


def run(settings: AgentSettings) -> None:
    """Run the agent of this node until SIGTERM or SIGINT."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    agent = Agent(settings, SystemRuntime(), random.Random())  # noqa: S311 - jitter, no secret
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    agent.run()
