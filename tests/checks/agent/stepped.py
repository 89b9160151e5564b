"""A node whose agent runs in this process, in time that the test moves; HTTP and files are real."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checks.agent.agent import Agent
from checks.agent.runtime import Join
from checks.agent.settings import AgentSettings
from tests.checks.agent.harness import BOOT, PATIENCE, Bot
from tests.lab import hardware

WALL = 1_796_000_000.0
STARTED = 7200.0
REPORT_SECONDS = 30.0


class SteppedRuntime:
    """Time that moves by `advance` only. `settle` returns once every thread waits for a later time.

    Threads are real, and so is what they do between two waits.
    """

    def __init__(self, uptime: float = STARTED, began: float = WALL - STARTED) -> None:
        self.began = began
        self._uptime = uptime
        self._changed = threading.Condition()
        self._threads = 0
        self._waiting: dict[int, tuple[threading.Event, float]] = {}

    @property
    def threads(self) -> int:
        """How many threads have been started and have not ended."""
        return self._threads

    def wall(self) -> float:
        return self.began + self._uptime

    def uptime(self) -> float:
        return self._uptime

    def wait(self, event: threading.Event, seconds: float) -> bool:
        with self._changed:
            until = self._uptime + seconds
            self._waiting[threading.get_ident()] = (event, until)
            self._changed.notify_all()
            while not event.is_set() and self._uptime < until:
                # Nobody says when an event is set, so it is looked at.
                self._changed.wait(0.002)
            del self._waiting[threading.get_ident()]
        return event.is_set()

    def start_thread(self, name: str, run: Callable[[], None]) -> Join:
        def counted() -> None:
            try:
                run()
            finally:
                with self._changed:
                    self._threads -= 1
                    self._changed.notify_all()

        with self._changed:
            self._threads += 1
        thread = threading.Thread(target=counted, name=name, daemon=True)
        thread.start()
        return thread.join

    def advance(self, seconds: float) -> None:
        with self._changed:
            self._uptime += seconds
            self._changed.notify_all()

    def settle(self) -> None:
        with self._changed:
            assert self._changed.wait_for(self._is_idle, PATIENCE), self._waiting

    def _is_idle(self) -> bool:
        waits = self._waiting.values()
        return len(waits) == self._threads and not any(
            event.is_set() or self._uptime >= until for event, until in waits
        )


class SteppedNode:
    """A healthy server and its agent; `pass_time` lets the agent live through so many seconds."""

    def __init__(self, directory: Path, bot: Bot) -> None:
        self.directory, self.bot = directory, bot
        self.root, self.policies = directory / "root", directory / "policies"
        self.runtime = SteppedRuntime()
        self.records = 0
        self.agent: Agent | None = None
        for place in (self.policies, directory / "state", self.root / "dev"):
            place.mkdir(parents=True)
        (directory / "token").write_text("token")
        (self.root / "dev/kmsg").touch()
        self.boot(BOOT)

    def boot(self, boot_id: str) -> None:
        hardware.furnish(self.root, ())
        hardware.write(self.root, "proc/sys/kernel/random/boot_id", f"{boot_id}\n")

    def reboot(self, boot_id: str) -> None:
        """Begin another boot, a minute ago and with an empty kernel log; the agent must not be running."""
        self.boot(boot_id)
        self.runtime = SteppedRuntime(uptime=60.0, began=self.runtime.wall())
        self.records = 0
        (self.root / "dev/kmsg").write_text("")

    def start(self) -> None:
        """Start the agent; return when its first report has been answered and what follows has been done."""
        self.begin()
        self.report()

    def begin(self) -> None:
        """Start the agent; return when its first report has been answered."""
        settings = AgentSettings(
            node="gpu-01",
            bot_url=self.bot.url,
            token_file=self.directory / "token",
            root=self.root,
            state_dir=self.directory / "state",
            policy_dir=self.policies,
            poll_seconds=0.001,
            report_interval_seconds=REPORT_SECONDS,
        )
        self.agent = Agent(settings, self.runtime, random.Random(1))
        self.agent.start()
        self.step()

    def stop(self) -> None:
        if self.agent is not None:
            self.agent.close()
            self.agent = None

    def step(self) -> None:
        """Have the agent read the kernel log to its end and do whatever is due now."""
        assert self.agent is not None
        for _ in range(2):
            self.agent.step()
            self.runtime.settle()

    def pass_time(self, seconds: float) -> None:
        """Move the clocks and have the agent do what is due then."""
        self.runtime.advance(seconds)
        self.step()

    def log(self, text: str, at: float | None = None) -> None:
        """Let the kernel log a line, now or at so many seconds of uptime."""
        usec = int((self.runtime.uptime() if at is None else at) * 1e6)
        with (self.root / "dev/kmsg").open("a") as log:
            log.write(f"4,{self.records},{usec},-;{text}\n")
        self.records += 1

    def report(self) -> dict[str, Any]:
        """Return the newest report after two seconds, in which every change is reported."""
        for _ in range(4):
            self.pass_time(0.5)
        return self.bot.reports[-1] if self.bot.reports else {}

    def policy(self, content: object) -> None:
        new = self.policies / "new"
        new.write_text(content if isinstance(content, str) else json.dumps(content))
        new.replace(self.policies / "h100.json")

    @property
    def wrong(self) -> list[str]:
        """Codes of what the node reports."""
        report = self.report()
        return sorted(each["code"] for each in (*report["findings"], *report["blind_spots"]))

    @property
    def counts(self) -> dict[str, int]:
        """Findings by code, with their counts."""
        return {each["code"]: each.get("count", 1) for each in self.report()["findings"]}
