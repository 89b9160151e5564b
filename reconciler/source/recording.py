"""Recording on the incident branch: one event is one commit, which only creates files.

Two back ends implement `Recorder`: GitHub's API (`github`) and a plain remote (`git_recorder`). Both move the
branch without force, so the first of two writers wins and the other learns what is there already. Both use
`record_on`; a back end only defines how its branch is read and moved.
"""

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

PATH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)+")
"""Paths that an event may create: plain names under a directory, no name starting with a dot."""


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Commit:
    """An event: the files that record it and the message of its commit.

    `files` maps new paths to their text; none of them may exist. `trailers` become `Key: value` lines at the
    end of the message. `decision_id` finds the commit again after a lost reply; it is written as the trailer
    `Decision-Id`. `author` is the person who decided, None for an event of the program itself.

    Raises ValueError for an event without files or with a path that is not a plain one.
    """

    files: Mapping[str, str]
    subject: str
    decision_id: str
    body: str = ""
    trailers: tuple[tuple[str, str], ...] = ()
    author: Person | None = field(default=None)

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("an event must create at least one file")
        for path in self.files:
            if PATH.fullmatch(path) is None:
                raise ValueError(f"{path!r} is not a path that a record may have")

    @property
    def message(self) -> str:
        """The commit message, trailers last. Text that people typed cannot add or hide a trailer."""
        lines = [
            f"{key}: {_one_line(value)}" for key, value in (*self.trailers, ("Decision-Id", self.decision_id))
        ]
        parts = (_one_line(self.subject), _body(self.body), "\n".join(lines))
        return "\n\n".join(part for part in parts if part) + "\n"


def decision_id_of(message: str) -> str:
    """Return the Decision-Id among the trailers of a commit message, empty when there is none."""
    last_paragraph = message.rstrip().rsplit("\n\n", 1)[-1]
    found = re.findall(r"^Decision-Id:\s*(\S+)\s*$", last_paragraph, flags=re.MULTILINE)
    return found[-1] if found else ""


class AlreadyRecordedError(Exception):
    """A file of the event exists already and belongs to another event: somebody else decided first."""

    def __init__(self, path: str, commit: str) -> None:
        super().__init__(f"{path} exists already at {commit}; read it to see who decided")
        self.path = path
        self.commit = commit


class RecordUnavailableError(Exception):
    """The event could not be recorded now (host down, refused, rate limited); try again later.

    `retry_after_seconds` is what the host asked for, None when it asked for nothing.
    """

    def __init__(self, reason: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_seconds = retry_after_seconds


class Recorder(Protocol):
    """Writes events to the incident branch."""

    def record(self, event: Commit) -> str:
        """Commit the event and return the commit's id.

        Recording the same event twice returns the first commit's id. Raises AlreadyRecordedError when another
        event holds one of the paths, RecordUnavailableError if it is not known whether the event is
        recorded.
        """
        ...


@dataclass(frozen=True, slots=True)
class PathAddition:
    """The commit that created a path, and the event it belongs to (empty when the commit names none)."""

    commit: str
    decision_id: str


class IncidentBranch(Protocol):
    """How a back end reads and moves the branch. Every method raises RecordUnavailableError."""

    def tip(self) -> str | None:
        """Return the commit the branch is at now, as the host says; None when there is no branch."""
        ...

    def addition(self, tip: str, path: str) -> PathAddition | None:
        """Return who created `path`, None when it does not exist at `tip`."""
        ...

    def append(self, tip: str | None, event: Commit) -> str | None:
        """Commit the event on top of `tip` and return the new tip; None when somebody moved the branch."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry after a lost race, and how long to wait: full jitter, doubling each time."""

    tries: int = 5
    least_seconds: float = 0.5
    most_seconds: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform

    def wait(self, lost: int) -> None:
        """Wait after the race was lost `lost` times (from 1)."""
        most = min(self.most_seconds, self.least_seconds * 2**lost)
        self.sleep(self.uniform(self.least_seconds, most))


def record_on(branch: IncidentBranch, event: Commit, pace: RetryPolicy) -> str:
    """Commit the event on `branch` exactly once and return its commit; raises as `Recorder.record` does.

    The branch is read before each try, so a commit whose reply was lost is found by its paths and is never
    written twice.
    """
    for lost in range(1, pace.tries + 1):
        tip = branch.tip()
        if tip is not None and (standing := _standing(branch, tip, event)) is not None:
            return standing
        commit = _append(branch, tip, event)
        if commit is not None:
            return commit
        if lost < pace.tries:
            pace.wait(lost)
    raise RecordUnavailableError(f"the incident branch changed during each of {pace.tries} tries")


def _append(branch: IncidentBranch, tip: str | None, event: Commit) -> str | None:
    try:
        return branch.append(tip, event)
    except RecordUnavailableError:
        # Perhaps only the reply was lost: the branch decides.
        now = branch.tip()
        if now is not None and now != tip and (standing := _standing(branch, now, event)) is not None:
            return standing
        raise


def _standing(branch: IncidentBranch, tip: str, event: Commit) -> str | None:
    """Return the commit that holds the event already; raises AlreadyRecordedError if another holds a path."""
    for path in event.files:
        addition = branch.addition(tip, path)
        if addition is None:
            continue
        if addition.decision_id == event.decision_id:
            return addition.commit
        raise AlreadyRecordedError(path, addition.commit)
    return None


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _body(text: str) -> str:
    """Return text for a commit body without lines of dashes, which would end the message for trailer parsers."""
    lines = ["".join(c if c.isprintable() else " " for c in line).rstrip() for line in text.splitlines()]
    return "\n".join(f" {line}" if line.startswith("---") else line for line in lines).strip("\n")
