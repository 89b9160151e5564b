"""Git and the desk kept in line: stories are read and folded in, wanted events are written.

A decision counts when it has been read back, never when it was sent. What cannot be recorded now stays
wanted, is shown as not recorded; it is judged again, by what Git says then, before each try.
"""

import structlog

from bot.incident import Ending, Event, State, Why
from bot.lifecycle.decide import Decisions
from bot.lifecycle.desk import Case, Desk
from bot.records.event import CLOSED, OPENED, wanted
from bot.records.ledger import Ledger, Pages
from bot.records.story import Story, catch_up, restore
from reconciler import recorder
from reconciler.git import RepositoryUnavailableError

log = structlog.get_logger("bot.lifecycle")

NOT_RECORDED = "Git cannot be written just now, so this is not recorded yet; it is tried again."
"""What people see of an incident whose next event Git refused."""


class GitSync:
    """Keeps desk and incident branch in line. `people` judges decisions again and tells their makers."""

    def __init__(self, desk: Desk, ledger: Ledger, people: Decisions) -> None:
        self._desk = desk
        self._ledger = ledger
        self._people = people
        self.retry_after = 0.0

    async def read(self) -> bool:
        """Read Git once and fold in what is new; False when the host does not answer."""
        try:
            pages = await self._ledger.read()
        except RepositoryUnavailableError as error:
            self._desk.report_trouble("git-read", str(error))
            if not self._desk.read_git:
                await self._start_from_mirror()
            return False
        self._desk.report_trouble("git-read", "; ".join(pages.trouble)[:500])
        self._take(pages)
        return True

    async def write(self) -> bool:
        """Record the next wanted event of each incident; False when Git refused and a later try is due.

        `retry_after` is then the seconds that the host asked for, 0 if it asked for nothing.
        """
        recorded = False
        for case in sorted(self._desk.cases.values(), key=_urgency):
            if case.incident.state is State.DECIDING and OPENED in case.incident.recorded:
                if not await self._decide(case):
                    return False
                continue
            event = wanted(case.incident, _posted(case))
            if event is None:
                continue
            if not await self._record(case, event):
                return False
            recorded = True
        return await self.read() if recorded else True

    async def _decide(self, case: Case) -> bool:
        """Record a decision that is still right by what Git and the world say now, and read it back."""
        if not await self.read():
            self._failed(case, recorder.RecordUnavailableError(self._desk.trouble["git-read"]))
            return False
        if case.incident.state is State.DECIDING and await self._people.still_right(case):
            event = wanted(case.incident, None)
            if event is not None and not await self._record(case, event):
                return False
            await self.read()
        if case.incident.state is not State.DECIDING:
            await self._people.overtaken(case)
        return True

    async def _record(self, case: Case, event: recorder.Event) -> bool:
        try:
            commit = await self._ledger.record(event)
        except recorder.AlreadyRecordedError as error:
            # Somebody else was first; reading back tells who, and what follows from it.
            log.info("event_found_recorded", incident=case.incident.id, path=error.path, commit=error.commit)
            self._desk.metrics.commits.labels("found").inc()
        except recorder.RecordUnavailableError as error:
            self._failed(case, error)
            return False
        else:
            log.info("event_recorded", incident=case.incident.id, subject=event.subject, commit=commit)
            self._desk.metrics.commits.labels("recorded").inc()
        self._desk.report_trouble("git-write", "")
        return True

    def _failed(self, case: Case, error: recorder.RecordUnavailableError) -> None:
        self.retry_after = error.retry_after_seconds or 0.0
        self._desk.report_trouble("git-write", str(error))
        self._desk.metrics.commits.labels("refused").inc()
        waiting = [each for each in self._desk.cases.values() if wanted(each.incident, None) is not None]
        for each in {id(each): each for each in (*waiting, case)}.values():
            each.trouble["git"] = NOT_RECORDED
        self._desk.bell.ring()

    async def _start_from_mirror(self) -> None:
        """Begin with what an earlier run read, rather than leave people without news while Git is away."""
        try:
            pages = await self._ledger.last_read()
        except RepositoryUnavailableError:
            return
        if pages.config is not None:
            self._take(pages)

    def _take(self, pages: Pages) -> None:
        desk = self._desk
        desk.config = pages.config or desk.config
        for incident_id, told in pages.open.items():
            case = desk.cases.get(incident_id)
            if case is None:
                self._restore(incident_id, told)
            else:
                desk.put(case, catch_up(case.incident, told))
                self._settle(case)
        for incident_id in pages.closed & set(desk.cases):
            self._closed(desk.cases[incident_id])
        desk.closed |= pages.closed
        if not desk.read_git:
            desk.read_git = True
            log.info("incidents_restored", open=len(desk.cases), closed=len(pages.closed))
            desk.bell.ring()

    def _restore(self, incident_id: str, told: Story) -> None:
        incident = restore(told)
        if incident is None or incident.id != incident_id or incident_id in self._desk.closed:
            return
        case = self._desk.open(incident)
        if told.thread is not None:
            case.shown.channel, case.shown.ts = told.thread.channel, told.thread.ts

    def _settle(self, case: Case) -> None:
        if case.trouble.get("git") and wanted(case.incident, None) is None:
            case.trouble.pop("git")
            self._desk.bell.ring()

    def _closed(self, case: Case) -> None:
        desk = self._desk
        if case.incident.state is not State.CLOSED:
            desk.follow(case, Event.CLOSE_RECORDED, ending=Ending(Why.RECORDED, desk.now()))
        desk.update(case, recorded=case.incident.recorded | {OPENED, CLOSED})
        self._settle(case)


def _posted(case: Case) -> tuple[str, str] | None:
    return (case.shown.channel, case.shown.ts) if case.shown.ts else None


def _urgency(case: Case) -> tuple[bool, float]:
    """Decisions first, then in the order of opening."""
    return case.incident.state is not State.DECIDING, case.incident.opened_at.timestamp()
