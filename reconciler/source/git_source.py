"""Polls Git for the configuration and the open repair records, and remembers when it last read them.

A failed read keeps the previous result, which then grows old; callers check its age before they act. One thread
polls; any number of threads read.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from reconciler.config.reader import ConfigErrors, read
from reconciler.config.schema import Config
from reconciler.incidents.admission import Admission, RecordUnknown, admit, approvers_of
from reconciler.incidents.paths import ROOT, open_records, worth_reading
from reconciler.settings import GitSettings
from reconciler.source.git import RepositoryUnavailableError
from reconciler.source.repository import Repository

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Desired:
    """What Git held at `read_at` (None: never read).

    `paths` are all files of the incidents, `files` the contents of those that admission needs. `config` is the
    newest configuration without errors.
    """

    config: Config | None = None
    config_commit: str = ""
    incidents_commit: str = ""
    paths: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)
    read_at: datetime | None = None

    @property
    def open_records(self) -> tuple[str, ...]:
        """Paths of the records without an outcome."""
        return open_records(self.paths)


@dataclass(frozen=True, slots=True)
class GitRecordSource:
    """Judges the records in `desired`, as long as it is younger than `valid_for`.

    A record counts as missing only if Git was read after `since`, when the Repair was first seen: another
    reconciler may have created it from a commit that is newer than our last read.
    """

    desired: Desired
    valid_for: timedelta
    since: datetime | None = None

    def judge(self, path: str, now: datetime) -> Admission | RecordUnknown:
        """Return whether the record at `path` may be carried out now; RecordUnknown if Git is too old."""
        if self.desired.config is None:
            return RecordUnknown("the configuration could not be read yet")
        if not self._is_fresh(now):
            return RecordUnknown("Git cannot be read")
        if self.stands(path, now) is None:
            return RecordUnknown("Git was read before this repair was seen")
        return admit(path, self.desired.files, self.desired.config, now)

    def stands(self, path: str, now: datetime) -> bool | None:
        """Whether there is a record at `path`; None if that is unknown now."""
        if path in self.desired.paths:
            return True
        return False if self._is_fresh(now) and self._is_recent() else None

    def owner(self, path: str) -> str:
        """Return the address of the record's first approver, empty if it cannot be read."""
        return next(iter(approvers_of(path, self.desired.files)), "")

    def _is_recent(self) -> bool:
        read_at = self.desired.read_at
        return self.since is None or (read_at is not None and read_at >= self.since)

    def _is_fresh(self, now: datetime) -> bool:
        return self.desired.read_at is not None and now - self.desired.read_at <= self.valid_for


class GitSource:
    """Reads the two branches of the cluster's repository. `read` is for one thread, `desired` for all."""

    def __init__(self, repository: Repository, settings: GitSettings, cluster: str) -> None:
        self._repository = repository
        self._settings = settings
        self._cluster = cluster
        self._lock = threading.Lock()
        self._desired = Desired()
        self._said = ""

    @property
    def desired(self) -> Desired:
        """What was read last."""
        with self._lock:
            return self._desired

    def read(self, now: datetime) -> bool:
        """Fetch and read what changed; True if there is news. Logs each problem once.

        Never raises if the host fails.
        """
        before = self.desired
        trouble = ""
        try:
            rewritten = self._repository.fetch()
            if rewritten:
                names = ", ".join(each.branch for each in rewritten)
                trouble = f"history of {names} was rewritten; the last good one is used"
        except RepositoryUnavailableError as error:
            trouble = str(error)
        try:
            desired = self._newest()
        except RepositoryUnavailableError as error:
            desired, trouble = self.desired, trouble or str(error)
        with self._lock:
            self._desired = desired if trouble else replace(desired, read_at=now)
        self._say(trouble)
        return (before.config, before.incidents_commit) != (desired.config, desired.incidents_commit)

    def _newest(self) -> Desired:
        desired = self.desired
        config = self._repository.tip(self._settings.config_branch) or ""
        incidents = self._repository.tip(self._settings.incidents_branch) or ""
        if config and config != desired.config_commit:
            desired = replace(desired, config=self._config(config) or desired.config, config_commit=config)
        if incidents and incidents != desired.incidents_commit:
            paths = frozenset(self._repository.listing(incidents, ROOT))
            files = self._repository.read(incidents, worth_reading(paths))
            desired = replace(desired, paths=paths, files=files, incidents_commit=incidents)
        return desired

    def _config(self, commit: str) -> Config | None:
        names = [
            path for path in self._repository.listing(commit) if "/" not in path and path.endswith(".yaml")
        ]
        found = read(self._repository.read(commit, names))
        if isinstance(found, ConfigErrors):
            log.error("configuration refused", commit=commit, faults=[str(fault) for fault in found.faults])
            return None
        if found.cluster != self._cluster:
            log.error("configuration refused", commit=commit, faults=[f"it is for cluster {found.cluster}"])
            return None
        log.info("configuration read", commit=commit, pools=[pool.name for pool in found.pools])
        return found

    def _say(self, trouble: str) -> None:
        if trouble == self._said:
            return
        if trouble:
            log.warning("git could not be read", reason=trouble)
        elif self._said:
            log.info("git was read again")
        self._said = trouble
