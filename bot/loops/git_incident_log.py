"""GitIncidentLog: the incident log in a Git repository, read from its mirror and written through a recorder.

Blobs are cached, because the files of an incident never change. The configuration on the other branch is read
in the same pass, so both come from one fetch.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import PurePosixPath

from bot.incidents.restore import IncidentRecords, read_records
from bot.loops.incident_log import GitSnapshot
from reconciler.config.reader import ConfigErrors, read
from reconciler.config.schema import Config
from reconciler.incidents.paths import CLOSED, ROOT, split_record
from reconciler.source.recording import Commit, Recorder
from reconciler.source.repository import Repository


class GitIncidentLog:
    """Reads and writes the incident branch of one cluster. Implements `IncidentLog`.

    `branches` are the configuration's and the incidents'. `writer` runs one commit at a time; whoever made it
    shuts it down.
    """

    def __init__(
        self, repository: Repository, recorder: Recorder, branches: tuple[str, str], writer: Executor
    ) -> None:
        self._repository = repository
        self._recorder = recorder
        self._config_branch, self._incidents_branch = branches
        self._writer = writer
        self._blobs: dict[str, bytes] = {}
        self._config: tuple[str, Config] | None = None

    async def read(self) -> GitSnapshot:
        """Fetch and return what Git says; raises RepositoryUnavailableError when the host does not answer."""
        return await asyncio.to_thread(self._fetch)

    async def last_read(self) -> GitSnapshot:
        """Return what the mirror holds from an earlier run; raises RepositoryUnavailableError if it is unusable."""
        return await asyncio.to_thread(self._read)

    async def record(self, event: Commit) -> str:
        """Commit the event in the writer's thread; raises what `Recorder.record` raises."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._recorder.record, event)

    def _fetch(self) -> GitSnapshot:
        rewrites = self._repository.fetch()
        snapshot = self._read()
        trouble = (f"the history of branch {each.branch} was rewritten" for each in rewrites)
        return replace(snapshot, trouble=(*trouble, *snapshot.trouble))

    def _read(self) -> GitSnapshot:
        config, faults = self._read_config()
        incidents, closed = self._read_incidents()
        for files in incidents.values():
            faults += files.faults
        return GitSnapshot(incidents, closed, config, tuple(faults))

    def _read_config(self) -> tuple[Config | None, list[str]]:
        tip = self._repository.tip(self._config_branch)
        if tip is None:
            return None, [f"there is no branch {self._config_branch} with the cluster's configuration"]
        if self._config is not None and self._config[0] == tip:
            return self._config[1], []
        paths = [path for path in self._repository.listing(tip) if "/" not in path]
        found = read(self._repository.read(tip, paths))
        if isinstance(found, ConfigErrors):
            # The last good list of approvers stays in force: a typo neither takes rights away nor grants any.
            return self._config and self._config[1], [str(each) for each in found.faults]
        self._config = (tip, found)
        return found, []

    def _read_incidents(self) -> tuple[dict[str, IncidentRecords], frozenset[str]]:
        tip = self._repository.tip(self._incidents_branch)
        if tip is None:
            return {}, frozenset()
        directories: dict[str, dict[str, str]] = {}
        for path, entry in self._repository.listing(tip, ROOT).items():
            place = split_record(path)
            if place is not None and entry.regular:
                directories.setdefault(place[0], {})[place[1]] = entry.blob
        closed = frozenset(
            PurePosixPath(directory).name for directory, files in directories.items() if CLOSED in files
        )
        living = {
            path: files for path, files in directories.items() if PurePosixPath(path).name not in closed
        }
        self._load(tip, living)
        incidents = {
            PurePosixPath(directory).name: read_records(
                directory, {name: self._blobs[blob] for name, blob in files.items() if blob in self._blobs}
            )
            for directory, files in living.items()
        }
        return incidents, closed

    def _load(self, tip: str, directories: Mapping[str, Mapping[str, str]]) -> None:
        wanted = {
            f"{directory}/{name}": blob
            for directory, files in directories.items()
            for name, blob in files.items()
        }
        self._blobs = {blob: text for blob, text in self._blobs.items() if blob in set(wanted.values())}
        missing = {path: blob for path, blob in wanted.items() if blob not in self._blobs}
        if missing:
            contents = self._repository.read(tip, missing)
            self._blobs |= {missing[path]: content for path, content in contents.items()}
