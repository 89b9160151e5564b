"""Records events by plain pushes from the mirror, for Git hosts without an API of their own."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.source.git import RepositoryUnavailableError
from reconciler.source.recording import (
    Commit,
    PathAddition,
    Person,
    RecordUnavailableError,
    RetryPolicy,
    record_on,
)
from reconciler.source.repository import Repository

RACE: Final = ("fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref", "stale info",
               "already exists", "incorrect old value")  # fmt: skip
"""What git reports if another push was first."""


class GitRecorder:
    """Records events by plain pushes from the mirror of `repository` to `branch`, which it creates if absent.

    `committer` is the program's identity. A branch with a rewritten history is not written to.
    """

    def __init__(
        self, repository: Repository, branch: str, committer: Person, pace: RetryPolicy | None = None
    ) -> None:
        self._repository = repository
        self._git = repository.git
        self._branch = branch
        self._committer = committer
        self._pace = pace or RetryPolicy(least_seconds=0.1, most_seconds=5.0)

    def record(self, event: Commit) -> str:
        """Commit the event and return the commit's id; see `recording.Recorder.record`."""
        with self._repository.lock:
            try:
                return record_on(self, event, self._pace)
            except RepositoryUnavailableError as error:
                raise RecordUnavailableError(str(error)) from error

    def tip(self) -> str | None:
        """Return the tip of the branch at the remote now."""
        for rewrite in self._repository.fetch():
            if rewrite.branch == self._branch:
                raise RecordUnavailableError(
                    f"history of {self._branch} was rewritten from {rewrite.old} to"
                    f" {rewrite.new or 'nothing'}; nothing is recorded until it is restored or accepted"
                )
        return self._repository.tip(self._branch)

    def addition(self, tip: str, path: str) -> PathAddition | None:
        """Return who created `path`; None when it does not exist at `tip`."""
        return self._repository.addition(tip, path)

    def append(self, tip: str | None, event: Commit) -> str | None:
        """Commit the event on top of `tip` and push it; None when another push was first."""
        commit = self._commit(tip, event)
        ref = f"refs/heads/{self._branch}"
        answer = self._git.run("push", "--porcelain", self._git.url, f"{commit}:{ref}", remote=True)
        if answer.status == 0:
            self._git.ask("update-ref", ref, commit, *([tip] if tip else []))
            return commit
        lines = answer.output.decode(errors="replace").splitlines()
        refused = [line for line in lines if line.startswith("!")]
        if any(word in line for line in refused for word in RACE):
            return None
        raise RecordUnavailableError(f"pushing to {self._branch} failed: {_why(refused, answer.reason)}")

    def _commit(self, tip: str | None, event: Commit) -> str:
        scratch = Path(tempfile.mkdtemp(prefix="clusterwright-index-"))
        try:
            index = {"GIT_INDEX_FILE": str(scratch / "index")}
            if tip is not None:
                self._git.ask("read-tree", tip, environment=index)
            blobs = {path: self._blob(text) for path, text in event.files.items()}
            lines = "".join(f"100644 {blob}\t{path}\0" for path, blob in blobs.items())
            self._git.ask("update-index", "-z", "--index-info", stdin=lines.encode(), environment=index)
            tree = self._git.ask("write-tree", environment=index).decode().strip()
        finally:
            shutil.rmtree(scratch)
        author = event.author or self._committer
        people = {**_identity("AUTHOR", author), **_identity("COMMITTER", self._committer)}
        parent = () if tip is None else ("-p", tip)
        made = self._git.ask("commit-tree", tree, *parent, stdin=event.message.encode(), environment=people)
        return made.decode().strip()

    def _blob(self, text: str) -> str:
        return self._git.ask("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()


def _identity(role: str, person: Person) -> Mapping[str, str]:
    return {f"GIT_{role}_NAME": person.name.strip() or person.email, f"GIT_{role}_EMAIL": person.email}


def _why(refused: list[str], reason: str) -> str:
    return refused[0].rsplit("\t", 1)[-1] if refused else reason
