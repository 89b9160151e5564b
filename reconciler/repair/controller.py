"""The loop: Git and Kubernetes as they are now → every open repair one act further.

Each repair has a thread of its own for as long as a pass takes, so that one BMC that hangs delays nobody
else; Git is followed by another thread. Nothing is remembered that the next start would miss.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from reconciler.apply.definitions import apply_definitions
from reconciler.config.schema import Config
from reconciler.incidents.admission import NotAdmitted, UnreadableRecord
from reconciler.incidents.records import Phase
from reconciler.kube.connection import Object, UnavailableError
from reconciler.kube.objects import Node
from reconciler.render import node_checks
from reconciler.repair import journal
from reconciler.repair.admit import RecordAdmitter, read_repair
from reconciler.repair.clients import LogOnce, RepairClients
from reconciler.repair.executor import Pass, advance, hold_back
from reconciler.repair.guard import fleet_can_spare
from reconciler.repair.scene import Repair, Scene
from reconciler.source.git_source import GitRecordSource, GitSource
from reconciler.source.recording import RecordUnavailableError

log = structlog.get_logger()

BURST = 30
"""Passes over one repair in a row before its thread is given back; a whole reboot takes some twelve."""


@dataclass(frozen=True, slots=True)
class ControllerIntervals:
    """How often and how much. A report older than `stale_after` or Git older than `git_valid` is unknown."""

    each_pass: timedelta
    git_poll: timedelta
    git_valid: timedelta
    apply_every: timedelta
    stale_after: timedelta
    workers: int


class RepairController:
    """Runs passes until it is stopped. `clock` gives the time in UTC."""

    def __init__(
        self,
        clients: RepairClients,
        git_source: GitSource,
        intervals: ControllerIntervals,
        crds: tuple[dict[str, Any], ...],
        clock: Callable[[], datetime],
    ) -> None:
        self._clients = clients
        self._git_source = git_source
        self._intervals = intervals
        self._crds = crds
        self._clock = clock
        self._log_once = LogOnce()
        self._admitter = RecordAdmitter(clients, self._log_once)
        self._pool = ThreadPoolExecutor(intervals.workers, thread_name_prefix="repair")
        self._running: dict[str, Future[None]] = {}
        self._due: dict[str, datetime] = {}
        self._seen: dict[str, datetime] = {}
        self._applied_at: datetime | None = None
        self._rendered: Config | None = None
        self._stopping = threading.Event()
        self._wake = threading.Event()

    @property
    def unreadable(self) -> tuple[UnreadableRecord, ...]:
        """Files in Git that should be repair records and are not."""
        return self._admitter.unreadable

    def stop(self) -> None:
        """End the loop between two steps; may be called from a signal handler or another thread."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Follow and reconcile until `stop`; returns once no repair is being worked on."""
        threading.Thread(target=self._follow, name="git", daemon=True).start()
        while not self._stopping.is_set():
            self._wake.clear()
            self._survive("reconcile", self.reconcile)
            self._wake.wait(self._intervals.each_pass.total_seconds())
        self._pool.shutdown(wait=True, cancel_futures=True)

    def reconcile(self) -> None:
        """One pass: apply definitions, admit records, give every due repair to a thread."""
        try:
            self._apply()
            repairs = self._read(self._clients.reader.repairs())
            self._take_in(repairs)
            self._start([each for each in repairs if not journal.is_done(each.status, journal.RECORD)])
        except UnavailableError as error:
            self._say("kubernetes", str(error))
        else:
            self._say("kubernetes", "")

    def _follow(self) -> None:
        while not self._stopping.is_set():
            before = self._git_source.desired
            self._survive("git", lambda: self._git_source.read(self._clock()))
            after = self._git_source.desired
            if (before.config, before.incidents_commit) != (after.config, after.incidents_commit):
                self._wake.set()
            self._stopping.wait(self._intervals.git_poll.total_seconds())

    def _survive(self, about: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            # A fault of ours must be seen, and must not end a loop on which other repairs depend.
            log.exception("pass failed", about=about)

    def _apply(self) -> None:
        now = self._clock()
        if self._applied_at is None or now - self._applied_at > self._intervals.apply_every:
            apply_definitions(self._clients.writer, self._crds)
            self._applied_at, self._rendered = now, None
        config = self._git_source.desired.config
        if config is not None and config != self._rendered:
            self._clients.writer.apply_config_map(node_checks.config_map(config, self._clients.namespace))
            self._rendered = config

    def _read(self, raw: Iterable[Object]) -> list[Repair]:
        found = []
        for each in raw:
            repair, name = read_repair(each), each["metadata"]["name"]
            if isinstance(repair, Repair):
                found.append(repair)
            elif self._log_once.is_new(f"object {name}", repair):
                log.error("repair object refused", repair=name, reason=repair)
        return found

    def _take_in(self, repairs: list[Repair]) -> None:
        desired, now = self._git_source.desired, self._clock()
        existing = {each.name for each in repairs}
        orders = GitRecordSource(desired, self._intervals.git_valid)
        created, refused = self._admitter.admit(desired, orders, existing, now)
        if created:
            self._wake.set()
        for each in refused:
            self._submit(f"outcome {each.path}", partial(self._record, each, now))

    def _record(self, refused: NotAdmitted, now: datetime) -> float:
        self._admitter.record(refused, now)
        # By then Git was read again, and the record is not open any more.
        return self._intervals.git_valid.total_seconds()

    def _start(self, repairs: list[Repair]) -> None:
        config = self._git_source.desired.config
        names, now = {each.name for each in repairs}, self._clock()
        self._seen = {name: self._seen.get(name, now) for name in names}
        self._due = {key: at for key, at in self._due.items() if key in names or key.startswith("outcome ")}
        self._running = {key: future for key, future in self._running.items() if not future.done()}
        if config is None:
            return
        in_repair = {each.node for each in repairs if each.status.phase is Phase.RUNNING}
        pending = [each for each in repairs if each.status.phase is Phase.PENDING]
        nodes = self._clients.reader.nodes() if pending else ()
        for repair in sorted(repairs, key=lambda each: (each.spec.record.approved_at, each.name)):
            waits = ""
            if repair.status.phase is Phase.PENDING:
                waits = _no_room(repair, config, nodes, in_repair)
                in_repair |= set() if waits else {repair.node}
            self._submit(repair.name, partial(self._burst, repair.name, waits, self._seen[repair.name]))

    def _burst(self, name: str, waits: str, seen: datetime) -> float:
        """Take one repair as far as it goes without waiting; return the seconds until it wants to go on.

        `seen` is when it was first seen.
        """
        for _ in range(BURST):
            raw, config = self._clients.reader.repair(name), self._git_source.desired.config
            repair = None if raw is None else read_repair(raw)
            if config is None or not isinstance(repair, Repair):
                break
            scene = self._scene(config, seen)
            result = hold_back(repair, scene, waits) if waits else advance(repair, scene)
            self._report(repair, result)
            if result.after is None or result.after > 0 or self._stopping.is_set():
                return result.after or 0.0
        return 0.0

    def _scene(self, config: Config, since: datetime) -> Scene:
        clients = self._clients
        return Scene(
            reader=clients.reader,
            writer=clients.writer,
            reports=clients.reports,
            machines=clients.machines(),
            recorder=clients.recorder,
            orders=GitRecordSource(self._git_source.desired, self._intervals.git_valid, since),
            config=config,
            namespace=clients.namespace,
            stale_after=self._intervals.stale_after,
            now=self._clock(),
            clock=self._clock,
        )

    def _submit(self, key: str, work: Callable[[], float]) -> None:
        running = self._running.get(key)
        if running is not None and not running.done():
            return
        if key not in self._due or self._due[key] <= self._clock():
            self._running[key] = self._pool.submit(self._work, key, work)

    def _work(self, key: str, work: Callable[[], float]) -> None:
        after, trouble = self._intervals.each_pass.total_seconds(), ""
        try:
            after = work()
        except (UnavailableError, RecordUnavailableError) as error:
            trouble = str(error)
        except Exception:
            # A fault of ours in one repair must not end the others, nor itself in silence.
            log.exception("pass failed", repair=key)
        self._say(key, trouble)
        self._due[key] = self._clock() + timedelta(seconds=after)

    def _report(self, repair: Repair, result: Pass) -> None:
        old, new = repair.status, result.status
        if (old.phase, old.step, old.message) != (new.phase, new.step, new.message):
            evidence = repair.spec.record.evidence
            said = {"repair": repair.name, "node": evidence.node, "incident": evidence.incident}
            log.info("repair went on", phase=new.phase.value, step=new.step, message=new.message, **said)

    def _say(self, about: str, trouble: str) -> None:
        if not self._log_once.is_new(f"trouble {about}", trouble):
            return
        if trouble:
            log.warning("waited for the outside", about=about, reason=trouble)
        else:
            log.info("outside answered again", about=about)


def _no_room(repair: Repair, config: Config, nodes: tuple[Node, ...], in_repair: set[str]) -> str:
    node = next((each for each in nodes if each.name == repair.node), None)
    pool = config.pool_of(node.labels) if node else None
    if pool is None:
        return ""
    members = [each.name for each in nodes if config.pool_of(each.labels) is pool]
    waits = fleet_can_spare(repair.node, members, in_repair, config.policy.max_in_repair_percent)
    return waits.reason if waits else ""
