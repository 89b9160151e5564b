"""IncidentLog: the incident branch and the configuration, as the loops read and write them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bot.incidents.restore import IncidentRecords
from reconciler.config.schema import Config
from reconciler.source.recording import Commit


@dataclass(frozen=True, slots=True)
class GitSnapshot:
    """What Git says at one moment.

    `open` are the records of each open incident by its id, `closed` the ids of the closed ones. `config` is
    None while no configuration could ever be read; `trouble` says what cannot be used.
    """

    open: Mapping[str, IncidentRecords] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    config: Config | None = None
    trouble: tuple[str, ...] = ()


class IncidentLog(Protocol):
    """Git, as far as incidents need it."""

    async def read(self) -> GitSnapshot:
        """Fetch and return what Git says; raises RepositoryUnavailableError when the host does not answer."""
        ...

    async def last_read(self) -> GitSnapshot:
        """Return what an earlier run fetched; raises RepositoryUnavailableError when that is unusable."""
        ...

    async def record(self, event: Commit) -> str:
        """Commit an event and return the commit's id.

        Raises AlreadyRecordedError when one of its files exists, RecordUnavailableError when Git cannot be
        written now.
        """
        ...
