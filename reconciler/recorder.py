"""The seam to Git's incident branch: one event is one commit that only ever creates files.

Two back ends implement `Recorder`: GitHub's API (`forge`) and a plain remote (`repository`). Both move the
branch without force, so the first of two rivals wins and the other is told what stands there already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: the files that record it and the words of its commit.

    `files` maps new paths to their text; none of them may exist. `trailers` become `Key: value` lines at the
    end of the message. `decision_id` finds the commit again after a lost reply; it is written as the trailer
    `Decision-Id`. `author` is the person who decided, None when the program itself speaks.
    """

    files: Mapping[str, str]
    subject: str
    decision_id: str
    body: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    author: Person | None = field(default=None)

    @property
    def message(self) -> str:
        """The commit message, trailers last."""
        lines = [f"{key}: {value}" for key, value in (*self.trailers, ("Decision-Id", self.decision_id))]
        return "\n\n".join(part for part in (self.subject, self.body, "\n".join(lines)) if part) + "\n"


class AlreadyRecordedError(Exception):
    """A file of the event exists already and was not written by this event: somebody else decided first."""

    def __init__(self, path: str, commit: str) -> None:
        super().__init__(f"{path} exists already at {commit}; read it to see who decided")
        self.path = path
        self.commit = commit


class RecordUnavailableError(Exception):
    """The event could not be recorded now (host down, refused, rate limited); try again later."""


class Recorder(Protocol):
    """Writes events to the incident branch."""

    def record(self, event: Event) -> str:
        """Commit the event and return the commit's id.

        Recording the same event twice returns the first commit's id. Raises AlreadyRecordedError when another
        event holds one of the paths, RecordUnavailableError when the outcome is that nothing is known to be
        recorded.
        """
        ...
