"""Records events through GitHub's REST API. The only module that imports PyGithub.

The library repeats only reads. After a lost reply a write is never sent again blindly: `record_on` reads the
branch and finds the event by its paths and its Decision-Id. Nothing here sleeps for a rate limit; the error says
how long GitHub asked to wait.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from github import Auth, Github, GithubException, InputGitAuthor, InputGitTreeElement, UnknownObjectException
from github.GitCommit import GitCommit
from github.GithubObject import NotSet
from github.Repository import Repository
from urllib3.util import Retry

from reconciler.source.recording import (
    Commit,
    PathAddition,
    Person,
    RecordUnavailableError,
    RetryPolicy,
    decision_id_of,
    record_on,
)

RACE: Final = ("fast forward", "fast-forward", "reference already exists", "reference does not exist")
"""GitHub's message (in lower case) with status 422 if another writer moved the ref first."""

READ_AGAIN: Final = Retry(
    total=2,
    allowed_methods=("GET", "HEAD"),
    status_forcelist=range(500, 600),
    backoff_factor=0.2,
    respect_retry_after_header=False,
    raise_on_status=False,
)
"""PyGithub's default repeats POST and PUT ten times, which doubles what was done before a 502, and sleeps in the
calling thread for as long as Retry-After says."""


@dataclass(frozen=True, slots=True)
class GitHubHost:
    """A repository (`owner/name`) on a GitHub. `token_file` is read again for every request.

    `timeout` bounds each request; `between_writes` is the least time between two writes, as GitHub asks.
    The caller keeps GitHub's limits (80 content writes a minute, 500 an hour); one event takes three.
    """

    api_url: str
    repository: str
    token_file: Path
    timeout: timedelta = timedelta(seconds=10)
    between_writes: timedelta = timedelta(milliseconds=100)


class GitHubRecorder:
    """Records events on `branch` in one ref update without force; creates the branch if it is absent.

    `committer` is the program's identity. Safe for several threads, one event at a time.
    """

    def __init__(
        self, host: GitHubHost, branch: str, committer: Person, pace: RetryPolicy | None = None
    ) -> None:
        self._host = host
        self._branch = branch
        self._committer = committer
        self._pace = pace or RetryPolicy()
        self._lock = threading.Lock()
        self._repository = _repository(host)

    def record(self, event: Commit) -> str:
        """Commit the event and return the commit's id; see `recorder.Recorder.record`."""
        with self._lock:
            return record_on(self, event, self._pace)

    def tip(self) -> str | None:
        """Return the tip of the branch now; None when the repository is there but the branch is not."""
        with self._log_once():
            try:
                return self._repository.get_git_ref(f"heads/{self._branch}").object.sha
            except UnknownObjectException:
                # GitHub answers "not found" for a repository that the token may not see, too.
                _ = self._repository.id
                return None

    def addition(self, tip: str, path: str) -> PathAddition | None:
        """Return who created `path`; None when it does not exist at `tip`."""
        with self._log_once():
            try:
                self._repository.get_contents(path, ref=tip)
            except UnknownObjectException:
                return None
            commits = list(self._repository.get_commits(sha=tip, path=path))
        if not commits:
            raise RecordUnavailableError(f"GitHub has {path} but lists no commit for it yet")
        return PathAddition(commits[-1].sha, decision_id_of(commits[-1].commit.message))

    def append(self, tip: str | None, event: Commit) -> str | None:
        """Commit the event on top of `tip` and move the branch; None when another writer was first."""
        with self._log_once():
            try:
                parent = None if tip is None else self._repository.get_git_commit(tip)
            except UnknownObjectException:
                # Reads lag behind writes for a while: the tip is known before its commit is.
                return None
            commit = self._commit(parent, event)
            if parent is not None and not self._only_adds(parent, commit, event):
                return None
            try:
                self._move(tip, commit.sha)
            except GithubException as error:
                if error.status == 422 and any(word in _said(error).lower() for word in RACE):
                    return None
                raise
            return commit.sha

    def _commit(self, parent: GitCommit | None, event: Commit) -> GitCommit:
        elements = [
            InputGitTreeElement(path, "100644", "blob", content=text) for path, text in event.files.items()
        ]
        tree = self._repository.create_git_tree(elements, NotSet if parent is None else parent.tree)
        return self._repository.create_git_commit(
            event.message,
            tree,
            [] if parent is None else [parent],
            author=_author(event.author or self._committer),
            committer=_author(self._committer),
        )

    def _only_adds(self, parent: GitCommit, commit: GitCommit, event: Commit) -> bool:
        """Whether the commit does nothing but create the event's files.

        A lagging read may have missed a file that exists; git's comparison of two trees cannot.
        """
        try:
            files = list(self._repository.compare(parent.sha, commit.sha).files)
        except UnknownObjectException:
            return False
        return {(file.filename, file.status) for file in files} == {(path, "added") for path in event.files}

    def _move(self, tip: str | None, commit: str) -> None:
        ref = f"refs/heads/{self._branch}"
        if tip is None:
            self._repository.create_git_ref(ref, commit)
            return
        # Not GitRef.edit: its address is known only after one more read of the ref.
        self._repository.requester.requestJsonAndCheck(
            "PATCH", f"{self._repository.url}/git/{ref}", input={"sha": commit, "force": False}
        )

    @contextmanager
    def _log_once(self) -> Iterator[None]:
        """Raise RecordUnavailableError, with a reason that people can act on, for the library's errors."""
        try:
            yield
        except GithubException as error:
            raise _unavailable(error, self._host) from error
        except OSError as error:
            raise RecordUnavailableError(f"GitHub cannot be reached ({type(error).__name__})") from error
        except (RuntimeError, json.JSONDecodeError) as error:
            raise RecordUnavailableError(f"{self._host.api_url} does not answer as GitHub does") from error


class _FileToken(Auth.Auth):
    """A token in a file that may be replaced at any time."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def token_type(self) -> str:
        return "Bearer"

    @property
    def token(self) -> str:
        try:
            return self._file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise RecordUnavailableError(
                f"the GitHub token cannot be read from {self._file}: {type(error).__name__}"
            ) from error


def _repository(host: GitHubHost) -> Repository:
    client = Github(
        base_url=host.api_url.rstrip("/"),
        auth=_FileToken(host.token_file),
        timeout=max(1, round(host.timeout.total_seconds())),
        retry=READ_AGAIN,
        per_page=100,
        seconds_between_requests=0,
        seconds_between_writes=host.between_writes.total_seconds(),
        lazy=True,
    )
    return client.get_repo(host.repository)


def _unavailable(error: GithubException, host: GitHubHost) -> RecordUnavailableError:
    said = _said(error)
    match error.status:
        case 401:
            return RecordUnavailableError(f"GitHub refused the token (401); renew it in {host.token_file}")
        case 403 | 429 if (wait := _asked_to_wait(error)) is not None:
            return RecordUnavailableError(f"GitHub limits the rate ({error.status}): {said}", wait)
        case 403 | 422:
            return RecordUnavailableError(
                f"GitHub refused ({error.status}): {said}; the App needs contents: write and must be"
                " allowed to pass the branch's rules"
            )
        case 404:
            return RecordUnavailableError(
                f"GitHub has no {host.repository}, or the token may not write to it (404)"
            )
        case 409:
            return RecordUnavailableError(f"GitHub cannot write now (409): {said}")
        case status:
            return RecordUnavailableError(f"GitHub failed ({status}): {said}")


def _asked_to_wait(error: GithubException) -> float | None:
    """Return the seconds GitHub asks to wait; None when the refusal is no rate limit."""
    headers = error.headers or {}
    after = headers.get("retry-after", "")
    if after.isdigit():
        return float(after)
    limited = (
        error.status == 429 or headers.get("x-ratelimit-remaining") == "0" or "rate limit" in _said(error)
    )
    # GitHub's own advice where it names no time: at least a minute.
    return 60.0 if limited else None


def _said(error: GithubException) -> str:
    data = error.data
    said = data.get("message") if isinstance(data, dict) else None
    return " ".join(str(said or "no reason given").split())[:300]


def _author(person: Person) -> InputGitAuthor:
    return InputGitAuthor(person.name.strip() or person.email, person.email)
