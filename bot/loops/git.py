"""Reads records from Git into the open incidents, and writes the events that Git lacks.

A decision counts when it has been read back, never when it was sent. A decision that cannot be recorded now is
shown as not recorded, and is judged again, by what Git says then, before each further try.
"""

import structlog

from bot.incidents.incident import Closure, IncidentEvent, State
from bot.incidents.next_commit import wanted
from bot.incidents.restore import IncidentRecords, catch_up, restore
from bot.incidents.store import IncidentStore, OpenIncident
from bot.loops.decide import Decisions
from bot.loops.incident_log import GitSnapshot, IncidentLog
from reconciler.incidents.paths import CLOSED, OPENED
from reconciler.incidents.records import CloseReason
from reconciler.source import recording
from reconciler.source.git import RepositoryUnavailableError

log = structlog.get_logger("bot.lifecycle")

NOT_RECORDED = "Git cannot be written at the moment, so this is not recorded yet. The bot keeps trying."
"""What people read on an incident whose next event could not be recorded."""


class GitLoop:
    """Keeps the open incidents and the incident branch in line. `decisions` judges a decision again."""

    def __init__(self, store: IncidentStore, incident_log: IncidentLog, decisions: Decisions) -> None:
        self._store = store
        self._incident_log = incident_log
        self._decisions = decisions
        self.retry_after = 0.0

    async def read(self) -> bool:
        """Read Git once and apply what is new; False when the host does not answer."""
        try:
            snapshot = await self._incident_log.read()
        except RepositoryUnavailableError as error:
            self._store.report_trouble("git-read", str(error))
            if not self._store.read_git:
                await self._start_from_mirror()
            return False
        self._store.report_trouble("git-read", "; ".join(snapshot.trouble)[:500])
        self._take(snapshot)
        return True

    async def write(self) -> bool:
        """Record the next event of each incident; False when Git refused one and a later try is due.

        `retry_after` is then the number of seconds that the host asked for, 0 if it asked for nothing.
        """
        recorded = False
        for open_incident in sorted(self._store.by_id.values(), key=_urgency):
            if open_incident.incident.state is State.DECIDING and OPENED in open_incident.incident.recorded:
                if not await self._decide(open_incident):
                    return False
                continue
            event = wanted(open_incident.incident, _posted(open_incident))
            if event is None:
                continue
            if not await self._record(open_incident, event):
                return False
            recorded = True
        return await self.read() if recorded else True

    async def _decide(self, open_incident: OpenIncident) -> bool:
        """Record a decision that still holds by what Git and Kubernetes say now, and read it back."""
        if not await self.read():
            self._failed(open_incident, recording.RecordUnavailableError(self._store.trouble["git-read"]))
            return False
        if open_incident.incident.state is State.DECIDING and await self._decisions.still_holds(
            open_incident
        ):
            event = wanted(open_incident.incident, None)
            if event is not None and not await self._record(open_incident, event):
                return False
            await self.read()
        if open_incident.incident.state is not State.DECIDING:
            await self._decisions.tell_if_superseded(open_incident)
        return True

    async def _record(self, open_incident: OpenIncident, event: recording.Commit) -> bool:
        try:
            commit = await self._incident_log.record(event)
        except recording.AlreadyRecordedError as error:
            # Somebody else was first. Reading back says who, and what follows from it.
            log.info(
                "event_found_recorded",
                incident=open_incident.incident.id,
                path=error.path,
                commit=error.commit,
            )
            self._store.metrics.commits.labels("found").inc()
        except recording.RecordUnavailableError as error:
            self._failed(open_incident, error)
            return False
        else:
            log.info(
                "event_recorded", incident=open_incident.incident.id, subject=event.subject, commit=commit
            )
            self._store.metrics.commits.labels("recorded").inc()
        self._store.report_trouble("git-write", "")
        return True

    def _failed(self, open_incident: OpenIncident, error: recording.RecordUnavailableError) -> None:
        self.retry_after = error.retry_after_seconds or 0.0
        self._store.report_trouble("git-write", str(error))
        self._store.metrics.commits.labels("refused").inc()
        waiting = [each for each in self._store.by_id.values() if wanted(each.incident, None) is not None]
        for each in {id(each): each for each in (*waiting, open_incident)}.values():
            each.trouble["git"] = NOT_RECORDED
        self._store.changed.notify()

    async def _start_from_mirror(self) -> None:
        """Start with what an earlier run read, so that people get news while Git is away."""
        try:
            snapshot = await self._incident_log.last_read()
        except RepositoryUnavailableError:
            return
        if snapshot.config is not None:
            self._take(snapshot)

    def _take(self, snapshot: GitSnapshot) -> None:
        store = self._store
        store.config = snapshot.config or store.config
        for incident_id, files in snapshot.open.items():
            open_incident = store.by_id.get(incident_id)
            if open_incident is None:
                self._restore(incident_id, files)
            else:
                self._catch_up(open_incident, files)
        for incident_id in snapshot.closed & set(store.by_id):
            self._closed(store.by_id[incident_id])
        store.closed |= snapshot.closed
        if not store.read_git:
            store.read_git = True
            log.info("incidents_restored", open=len(store.by_id), closed=len(snapshot.closed))
            store.changed.notify()

    def _catch_up(self, open_incident: OpenIncident, files: IncidentRecords) -> None:
        before = open_incident.incident.state
        self._store.set_incident(open_incident, catch_up(open_incident.incident, files))
        if open_incident.incident.state is State.OPEN and before is not State.OPEN:
            # After a repair that did not succeed, people soon see what they may approve next.
            open_incident.pods_read_at = None
        self._settle(open_incident)

    def _restore(self, incident_id: str, files: IncidentRecords) -> None:
        incident = restore(files)
        if incident is None or incident.id != incident_id or incident_id in self._store.closed:
            return
        open_incident = self._store.open(incident)
        if files.thread is not None:
            open_incident.thread.channel, open_incident.thread.ts = files.thread.channel, files.thread.ts

    def _settle(self, open_incident: OpenIncident) -> None:
        if open_incident.trouble.get("git") and wanted(open_incident.incident, None) is None:
            open_incident.trouble.pop("git")
            self._store.changed.notify()

    def _closed(self, open_incident: OpenIncident) -> None:
        store = self._store
        if open_incident.incident.state is not State.CLOSED:
            store.transition(
                open_incident, IncidentEvent.CLOSE_RECORDED, ending=Closure(CloseReason.RECORDED, store.now())
            )
        store.update(open_incident, recorded=open_incident.incident.recorded | {OPENED, CLOSED})
        self._settle(open_incident)


def _posted(open_incident: OpenIncident) -> tuple[str, str] | None:
    return (open_incident.thread.channel, open_incident.thread.ts) if open_incident.thread.ts else None


def _urgency(open_incident: OpenIncident) -> tuple[bool, float]:
    """Decisions first, then in the order of opening."""
    return open_incident.incident.state is not State.DECIDING, open_incident.incident.opened_at.timestamp()
