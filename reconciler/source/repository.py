"""A bare mirror of the cluster's repository, which is fetched and read.

There is no work tree: files are read as blobs out of a commit, so symlinks, submodules, filters and hooks in
the repository stay data. If the history of a branch was rewritten, the mirror keeps the last good tip until
somebody accepts the new one.
"""

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from reconciler.source.git import Git, RepositoryUnavailableError
from reconciler.source.recording import (
    PathAddition,
)

BRANCH: Final = re.compile(r"(?!.*(\.\.|//|\.lock(/|$)))[A-Za-z0-9][A-Za-z0-9._/-]*(?<![./])")
"""Branch names that may be passed to git: they begin with a letter or digit and hold no special characters."""

COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
"""A full commit id, SHA-1 or SHA-256."""

LIMIT: Final = timedelta(seconds=60)
"""How long one git command may take before its process group is killed."""

ARGUMENTS: Final = 500
"""Paths in one command, far below the kernel's limit on the size of an argument list."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A path in a commit. `size` is in bytes, None for a submodule."""

    mode: str
    blob: str
    size: int | None

    @property
    def regular(self) -> bool:
        """Whether it is a plain file; a symlink (120000) or submodule (160000) is not."""
        return self.mode in ("100644", "100755")


@dataclass(frozen=True, slots=True)
class RewrittenBranch:
    """A branch that no longer contains the commit that we knew. `new` is the host's tip, None if it is deleted."""

    branch: str
    old: str
    new: str | None


class Repository:
    """A bare mirror of `branches` of `url` in the directory `mirror`, which one program owns.

    Safe for several threads: fetching and pushing take a lock, reading does not. `token_file` is read again
    for every command. Raises ValueError for a URL or a branch name that must not be used; every method
    raises RepositoryUnavailableError if git fails; what was fetched before stays readable.
    """

    def __init__(
        self,
        url: str,
        mirror: Path,
        token_file: Path | None = None,
        branches: tuple[str, ...] = ("main", "incidents"),
        limit: timedelta = LIMIT,
    ) -> None:
        for branch in branches:
            if BRANCH.fullmatch(branch) is None:
                raise ValueError(f"{branch!r} is not a branch name; use letters, digits and . _ / -")
        self.git = Git(url, mirror, token_file, limit)
        self.branches = branches
        self.lock = threading.RLock()
        self._mirror = mirror
        self._limit = limit

    def fetch(self) -> tuple[RewrittenBranch, ...]:
        """Fetch the branches; return those with a rewritten history, which keep their tip.

        A branch that never existed is no error. Costs one round trip when nothing changed.
        """
        with self.lock:
            self._prepare()
            there = self._remote_tips()
            known = {branch: self.tip(branch) for branch in self.branches}
            changed = [branch for branch, commit in there.items() if commit != known[branch]]
            if changed:
                self._download(changed)
            rewrites = [self._advance(branch, known[branch]) for branch in changed]
            gone = [
                RewrittenBranch(b, old, None)
                for b, old in known.items()
                if old is not None and b not in there
            ]
            return (*(each for each in rewrites if each is not None), *gone)

    def accept(self, rewrite: RewrittenBranch) -> None:
        """Accept the rewritten branch: its tip becomes `new`, or none if the branch is deleted."""
        with self.lock:
            ref = f"refs/heads/{rewrite.branch}"
            argv = ("-d", ref, rewrite.old) if rewrite.new is None else (ref, rewrite.new, rewrite.old)
            self.git.ask("update-ref", *argv)

    def tip(self, branch: str) -> str | None:
        """Return the last good commit of a branch as fetched; None when there is none yet."""
        if not (self._mirror / "HEAD").exists():
            return None
        answer = self.git.run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
        return answer.output.decode().strip() or None

    def listing(self, commit: str, prefix: str = "") -> dict[str, TreeEntry]:
        """Return every path under the directory `prefix` at `commit`, links and submodules included.

        Paths that are not UTF-8 keep their bytes as surrogate escapes.
        """
        return self._entries("-r", _commit(commit), *(("--", prefix) if prefix else ()))

    def read(self, commit: str, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of the plain files among `paths` at `commit`.

        Paths that are absent, symlinks or submodules have no entry in the result.
        """
        asked = list(dict.fromkeys(paths))
        blobs: dict[str, str] = {}
        for start in range(0, len(asked), ARGUMENTS):
            entries = self._entries(_commit(commit), "--", *asked[start : start + ARGUMENTS])
            blobs |= {path: entry.blob for path, entry in entries.items() if entry.regular}
        raw = self.git.ask("cat-file", "--batch", stdin="".join(f"{b}\n" for b in blobs.values()).encode())
        contents, at = {}, 0
        for path in blobs:
            end = raw.index(b"\n", at)
            size = int(raw[at:end].split()[2])
            contents[path] = raw[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return contents

    def is_ancestor(self, old: str, new: str) -> bool | None:
        """Whether `new` contains `old`; None when git does not know one of them."""
        answer = self.git.run("merge-base", "--is-ancestor", _commit(old), _commit(new))
        return {0: True, 1: False}.get(answer.status)

    def addition(self, commit: str, path: str) -> PathAddition | None:
        """Return the commit that created `path` and the Decision-Id it carries; None if it is not there."""
        if not self.git.ask("ls-tree", "-z", "--full-tree", _commit(commit), "--", path):
            return None
        form = "--format=%H%x00%(trailers:key=Decision-Id,valueonly,separator=%x2C)%x00"
        raw = self.git.ask("log", "--diff-filter=A", "--no-renames", form, commit, "--", path)
        # The oldest addition: a later one would need a deletion first, and records are never deleted.
        fields = raw.decode(errors="replace").split("\0")
        return PathAddition(fields[-3].strip(), fields[-2].strip())

    def _entries(self, *argv: str) -> dict[str, TreeEntry]:
        raw = self.git.ask("ls-tree", "-z", "-l", "--full-tree", *argv)
        entries = {}
        for line in raw.split(b"\0")[:-1]:
            meta, _, path = line.partition(b"\t")
            mode, _kind, blob, size = meta.decode().split()
            name = path.decode(errors="surrogateescape")
            entries[name] = TreeEntry(mode, blob, None if size == "-" else int(size))
        return entries

    def _prepare(self) -> None:
        if not (self._mirror / "HEAD").exists():
            self._mirror.parent.mkdir(parents=True, exist_ok=True)
            self.git.ask("init", "--quiet", "--bare", "--initial-branch=main")
        oldest = time.time() - 2 * self._limit.total_seconds()
        stale = [*self._mirror.glob("*.lock"), *self._mirror.glob("refs/**/*.lock")]
        for lock in stale:
            # The process that made it has been killed long ago: no command of ours runs half that long.
            if lock.stat().st_mtime < oldest:
                lock.unlink(missing_ok=True)

    def _remote_tips(self) -> dict[str, str]:
        wanted = {f"refs/heads/{branch}": branch for branch in self.branches}
        answer = self.git.run("ls-remote", "--quiet", self.git.url, *wanted, remote=True)
        if answer.status != 0:
            raise RepositoryUnavailableError(f"reading {self.git.url} failed: {answer.reason}")
        lines = (line.split("\t") for line in answer.output.decode().splitlines())
        return {wanted[ref]: commit for commit, ref in lines if ref in wanted}

    def _download(self, branches: Iterable[str]) -> None:
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        refspecs = (f"+refs/heads/{branch}:refs/fetched/{branch}" for branch in branches)
        answer = self.git.run("fetch", *options, self.git.url, *refspecs, remote=True)
        if answer.status != 0:
            raise RepositoryUnavailableError(f"fetching {self.git.url} failed: {answer.reason}")

    def _advance(self, branch: str, known: str | None) -> RewrittenBranch | None:
        new = self.git.ask("rev-parse", "--verify", f"refs/fetched/{branch}^{{commit}}").decode().strip()
        contains = True if known is None else self.is_ancestor(known, new)
        if contains is None:
            raise RepositoryUnavailableError(
                f"{self._mirror} lacks commits of {branch}; delete that directory, it is cloned again"
            )
        if known is not None and not contains:
            return RewrittenBranch(branch, known, new)
        self.git.ask("update-ref", f"refs/heads/{branch}", new, *([known] if known else []))
        return None


def _commit(commit: str) -> str:
    if COMMIT.fullmatch(commit) is None:
        raise ValueError(f"{commit!r} is not a full commit id")
    return commit
