"""The agent: follow the kernel log, keep what it says, have it reported. The node's only program of ours.

One thread reads the kernel log, one makes the rounds of the checks, one reports; they share the state.
"""

import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from checks import registry
from checks.agent.health import Health, healthz, metrics
from checks.agent.http_server import PageServer
from checks.agent.node_state import NodeState
from checks.agent.policy_file import MountedPolicy
from checks.agent.publish import Answer, Publisher, Target
from checks.agent.scheduler import Rounds
from checks.agent.self_metrics import Pulse
from checks.agent.settings import Settings
from checks.agent.ticker import TICK_SECONDS, Metronome
from checks.debounce import Moment
from checks.gpu.inventory import KnownInventory
from checks.gpu.sampler import GpuDoor
from checks.host import critical_devices
from checks.host.files import text
from checks.kernel.classify import Reader
from checks.kernel.event import Event
from checks.kernel.host import storage
from checks.kernel.kmsg import Follower, Log, Lost, Record
from checks.kernel.line import record_line
from checks.kernel.sift import KERNEL
from checks.report import Accepted, NodeReport
from checks.report_delta import Refused

POOL_SECONDS = 60.0
"""How long a new agent waits to be told its pool: which checks are switched off depends on it."""

STOP_SECONDS = 2.0
"""Wait at the end for a report that is under way."""

BOOT_ID = "proc/sys/kernel/random/boot_id"
"""Where the kernel tells the id of the running boot, under the root."""

log = logging.getLogger("checks.agent.agent")

Clock = Callable[[], float]


class Agent:
    """One node's agent. `wall` gives Unix seconds, `monotonic` seconds since boot by the kernel's clock."""

    def __init__(self, settings: Settings, wall: Clock, monotonic: Clock, chance: random.Random) -> None:
        self._settings = settings
        self._wall = wall
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._state = NodeState(settings.state_dir, read_boot_id(settings.root))
        self._reader = Reader(self._state.branch)
        self._follower = Follower(
            Log(settings.kernel_log_path, settings.poll_seconds, self._wake),
            KERNEL,
            self._state.cursor,
        )
        self._pulse = Pulse(monotonic)
        self._inventory = KnownInventory(settings.root)
        self._pages = PageServer(
            settings.health_listen,
            {
                "/healthz": lambda: healthz(self._health()),
                "/metrics": lambda: metrics(self._health()),
            },
        )
        self._doors = registry.doors()
        self._policy = MountedPolicy(settings.policy_dir, registry.NAMES)
        self._metronome = Metronome(
            lambda: Moment(wall(), monotonic()), chance, min(TICK_SECONDS, settings.report_interval_seconds)
        )
        self._rounds = Rounds(
            settings.root,
            (registry.CHECKS, self._doors),
            self._state,
            lambda: self._policy.current,
            self._metronome,
        )
        self._publisher = Publisher(
            Target(settings.bot_url, settings.token_file, settings.ca_file, settings.timeout_seconds),
            self._compose,
            self._hear,
            settings.report_interval_seconds,
            self._metronome,
        )
        self._state.tell = self._publisher.change
        self._state.bot_url = settings.bot_url
        self._told = self._state.revision
        self._rounds_by = 0.0

    def run(self) -> None:
        """Follow the log and report until stopped."""
        log.info("agent of node %s started, boot %s", self._settings.node, self._state.boot_id)
        self._policy.refresh(self._state.pool)
        self._publisher.start()
        self._rounds_by = self._monotonic() + (0.0 if self._state.pool else POOL_SECONDS)
        self._pages.start()
        while not self._stopping.is_set():
            self.step()
        self._pages.stop()
        self._rounds.stop()
        self._state.save()
        self._publisher.stop(STOP_SECONDS)
        self._follower.close()
        log.info("agent stopped")

    def step(self) -> None:
        """Read what the log has to say, or wait for it, and note what follows from it."""
        items = self._follower.read(self._metronome.wait_seconds())
        self._pulse.beat()
        now, uptime = self._wall(), self._monotonic()
        boot_id = read_boot_id(self._settings.root)
        # An id that cannot be read just now is no other boot (T12).
        if boot_id and boot_id != self._state.boot_id:
            self._restart(boot_id)
        else:
            self._take(items, now, uptime)
        self._state.see(self._follower.blind, now)
        self._policy.refresh(self._state.pool)
        self._state.see_policy(self._policy.trouble, now)
        if uptime >= self._rounds_by:
            self._rounds.start()
        self._rounds.supervise()
        self._state.expire(Moment(now, uptime))
        if self._told != self._state.revision:
            self._told = self._state.revision
            self._publisher.change()

    def stop(self) -> None:
        """End `run` soon; may be called from a signal or another thread."""
        self._stopping.set()
        os.write(self._waker, b"x")

    def _take(self, items: list[Record | Lost], now: float, uptime: float) -> None:
        events: list[tuple[Event, Moment]] = []
        # At most once a batch, and for most batches not at all.
        devices = cache(lambda: critical_devices.devices(self._settings.root))
        for item in items:
            if isinstance(item, Lost):
                self._state.lose(item, now)
                continue
            # A live record was logged now; an older one as long ago as the kernel's own clock says (K7).
            age = 0.0 if item.live else max(0.0, uptime - item.header.usec / 1e6)
            at = Moment(now - age, uptime - age)
            events += [(storage.judge(event, devices), at) for event in self._read(item)]
        self._state.take(events, self._follower.last)
        self._state.branch = self._reader.branch

    def _read(self, record: Record) -> list[Event]:
        line = record_line(record.header)
        events = self._reader.events(line, record.header.sequence) if line else []
        return [event.times(record.count) for event in events] if record.count > 1 else events

    def _restart(self, boot_id: str) -> None:
        log.info("another boot began: %s", boot_id)
        self._state.restart(boot_id)
        self._reader = Reader()
        self._follower.restart()
        self._rounds.restart()

    def _hear(self, report: NodeReport, answer: Answer) -> None:
        self._pulse.hear(answer.status, accepted=answer.accepted)
        match answer.said:
            case Accepted() as accepted:
                self._state.hear(accepted)
                self._policy.refresh(self._state.pool)
                self._rounds.start()
            case Refused(held=int(held)):
                self._state.skip_to(held)
            case None if answer.accepted:
                log.warning("the bot's answer is not understood: %s", answer.text[:200])
            case _ if answer.overtaken:
                self._state.skip_to(int(report.sent_at))

    def _health(self) -> Health:
        findings, blind_spots = self._state.standing()
        gpus = self._inventory.read(self._state.boot_id).gpus
        child = any(isinstance(door, GpuDoor) and door.child_pid is not None for door in self._doors)
        return self._pulse.health(
            findings, blind_spots, sequence=self._follower.last, child=child if gpus else None
        )

    def _compose(self) -> NodeReport:
        inventory = self._inventory.read(self._state.boot_id)
        return self._state.report(self._settings.node, inventory, self._wall())


def read_boot_id(root: Path) -> str:
    """Return the id of the running boot under `root`; empty while it cannot be read."""
    return text(root / BOOT_ID) or ""


def run(settings: Settings) -> None:
    """Run the agent of this node until SIGTERM or SIGINT."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    agent = Agent(settings, time.time, time.monotonic, random.Random())  # noqa: S311 - jitter, no secret
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    agent.run()
