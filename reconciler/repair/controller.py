"""The repair controller: admits records from Git and advances every open repair.

Each repair uses a thread of the pool for one burst of passes, so that a BMC that hangs delays no other repair.
All state that a restart needs is in Git and Kubernetes.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor as ThreadPool
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from reconciler.config.schema import Config
from reconciler.incidents.admission import NotAdmitted, UnreadableRecord
from reconciler.incidents.progress import Phase
from reconciler.kube.objects import Node, Object
from reconciler.kube.results import UnavailableError
from reconciler.log import LogOnce
from reconciler.repair.admit import RecordAdmitter
from reconciler.repair.clients import RepairClients
from reconciler.repair.executor import Executor, Pass
from reconciler.repair.guard import fleet_can_spare
from reconciler.repair.providers.registry import PROVIDERS
from reconciler.repair.providers.unknown import UNKNOWN
from reconciler.repair.resource import Repair, read_repair
from reconciler.repair.step import StepContext
from reconciler.source.git_source import Desired, GitRecordSource
from reconciler.source.recording import RecordUnavailableError

log = structlog.get_logger()

BURST = 30
"""Most passes over one repair in a row before its thread is free again; a whole reboot takes about twelve."""


@dataclass(frozen=True, slots=True)
class ControllerIntervals:
    """How often to look. Reports older than `stale_after` and a Git read older than `git_valid` count as unknown."""

    each_pass: timedelta
    git_poll: timedelta
    git_valid: timedelta
    stale_after: timedelta


class RepairController:
    """Reconciles repairs, one pass at a time. `clock` gives the time in UTC.

    `desired` returns the last read of Git; `pool` runs the passes over single repairs.
    """

    def __init__(
        self,
        clients: RepairClients,
        desired: Callable[[], Desired],
        intervals: ControllerIntervals,
        clock: Callable[[], datetime],
        pool: ThreadPool,
    ) -> None:
        self._clients = clients
        self._desired = desired
        self._intervals = intervals
        self._clock = clock
        self._pool = pool
        self._log_once = LogOnce()
        self._admitter = RecordAdmitter(clients, self._log_once)
        self._running: dict[str, Future[datetime]] = {}
        self._due: dict[str, datetime] = {}
        self._seen: dict[str, datetime] = {}
        self._stopping = False

    @property
    def unreadable(self) -> tuple[UnreadableRecord, ...]:
        """Files in Git that should be repair records and are not valid."""
        return self._admitter.unreadable

    def stop(self) -> None:
        """Let every repair finish its current pass and start no other; waits for them."""
        self._stopping = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def reconcile(self) -> bool:
        """Admit records and advance every repair that is due; True if there are new repairs for the next pass."""
        self._collect()
        try:
            repairs = self._read(self._clients.reader.repairs())
            created = self._admit(repairs)
            self._start([each for each in repairs if not (each.status.recorded and each.status.released)])
        except UnavailableError as error:
            self._say("kubernetes", str(error))
            return False
        self._say("kubernetes", "")
        return created

    def _read(self, raw: Iterable[Object]) -> list[Repair]:
        found = []
        for each in raw:
            repair, name = read_repair(each), each["metadata"]["name"]
            if isinstance(repair, Repair):
                found.append(repair)
            elif self._log_once.is_new(f"object {name}", repair):
                log.error("repair object refused", repair=name, reason=repair)
        return found

    def _admit(self, repairs: list[Repair]) -> bool:
        desired, now = self._desired(), self._clock()
        existing = {each.name for each in repairs}
        records = GitRecordSource(desired, self._intervals.git_valid)
        created, refused = self._admitter.admit(desired, records, existing, now)
        for each in refused:
            self._submit(f"outcome {each.path}", partial(self._record, each, now))
        return created

    def _record(self, refused: NotAdmitted, now: datetime) -> float:
        self._admitter.record(refused, now)
        # By then Git has been read again, and the record is not open any more.
        return self._intervals.git_valid.total_seconds()

    def _start(self, repairs: list[Repair]) -> None:
        config, now = self._desired().config, self._clock()
        self._seen = {each.name: self._seen.get(each.name, now) for each in repairs}
        if config is None:
            return
        pending = [each for each in repairs if each.status.phase is Phase.PENDING]
        for repair in repairs:
            if repair.status.phase is not Phase.PENDING:
                self._submit_burst(repair)
        in_repair = {each.node for each in repairs if each.status.phase is Phase.RUNNING}
        # Running repairs go on even if the nodes cannot be listed.
        nodes = self._clients.reader.nodes() if pending else ()
        for repair in sorted(pending, key=lambda each: (each.spec.record.approved_at, each.name)):
            waits = _no_capacity(repair, config, nodes, in_repair)
            in_repair |= set() if waits else {repair.node}
            self._submit_burst(repair, waits)

    def _submit_burst(self, repair: Repair, waits: str = "") -> None:
        self._submit(repair.name, partial(self._burst, repair.name, waits, self._seen[repair.name]))

    def _burst(self, name: str, waits: str, seen: datetime) -> float:
        """Advance one repair until it has to wait; return the seconds until its next pass.

        `seen` is when the repair was first seen.
        """
        for _ in range(BURST):
            raw, config = self._clients.reader.repair(name), self._desired().config
            repair = None if raw is None else read_repair(raw)
            if config is None or not isinstance(repair, Repair):
                break
            executor = Executor(repair, self._context(repair, config, seen), self._clients.recorder)
            result = executor.hold_back(waits) if waits else executor.advance()
            self._report(repair, result)
            if result.after is None or result.after > 0 or self._stopping:
                return result.after or 0.0
        return 0.0

    def _context(self, repair: Repair, config: Config, since: datetime) -> StepContext:
        clients = self._clients
        kind = PROVIDERS.get(repair.spec.record.plan.provider, UNKNOWN)
        return StepContext(
            reader=clients.reader,
            writer=clients.writer,
            reports=clients.reports,
            records=GitRecordSource(self._desired(), self._intervals.git_valid, since),
            kind=kind,
            provider=clients.connect(kind),
            config=config,
            namespace=clients.namespace,
            stale_after=self._intervals.stale_after,
            now=self._clock(),
            clock=self._clock,
        )

    def _submit(self, key: str, work: Callable[[], float]) -> None:
        if key not in self._running and key not in self._due:
            self._running[key] = self._pool.submit(self._work, key, work)

    def _collect(self) -> None:
        """Remember when finished work is due again, and forget what is due now."""
        ended = {key: future for key, future in self._running.items() if future.done()}
        self._running = {key: future for key, future in self._running.items() if key not in ended}
        self._due |= {key: future.result() for key, future in ended.items()}
        now = self._clock()
        self._due = {key: at for key, at in self._due.items() if at > now}

    def _work(self, key: str, work: Callable[[], float]) -> datetime:
        """Do the work and return when it is due again; after an error that is the usual interval."""
        after, trouble = self._intervals.each_pass.total_seconds(), ""
        try:
            after = work()
        except (UnavailableError, RecordUnavailableError) as error:
            trouble = str(error)
        except Exception:
            # A bug must be visible, and must not affect other repairs.
            log.exception("pass failed", repair=key)
        self._say(key, trouble)
        return self._clock() + timedelta(seconds=after)

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


def _no_capacity(repair: Repair, config: Config, nodes: tuple[Node, ...], in_repair: set[str]) -> str:
    node = next((each for each in nodes if each.name == repair.node), None)
    pool = config.pool_of(node.labels) if node else None
    if pool is None:
        return ""
    members = [each.name for each in nodes if config.pool_of(each.labels) is pool]
    waits = fleet_can_spare(repair.node, members, in_repair, config.policy.max_in_repair_percent)
    return waits.reason if waits else ""
