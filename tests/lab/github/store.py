"""A real bare repository, read and written by git plumbing: `git log` and `git fsck` judge the emulator."""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ZERO = "0" * 40

IDENTITY = {"name": "Example Operator", "email": "operator@example.com"}

PRE_RECEIVE = """#!/bin/sh
# Refuses a push to a protected branch unless the App pushes it.
[ "$REMOTE_USER" = "bypass" ] && exit 0
while read -r _ _ ref; do
    if grep -qxF "$ref" protected-refs 2>/dev/null; then
        echo "error: GH006: Protected branch update failed for $ref." >&2
        exit 1
    fi
done
"""


class GitError(Exception):
    """A plumbing command failed."""


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: dict[str, str]
    committer: dict[str, str]
    message: str


@dataclass(frozen=True)
class TreeEntry:
    mode: str
    kind: str
    sha: str
    size: int | None
    path: str


class Store:
    def __init__(self, bare: Path) -> None:
        self.bare = bare

    def create(self) -> None:
        self.bare.parent.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")
        for key, value in (("http.receivepack", "true"), ("receive.fsckObjects", "true"), ("gc.auto", "0")):
            self.git("config", key, value)
        hook = self.bare / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(PRE_RECEIVE)
        hook.chmod(0o755)

    def git(self, *argv: str, stdin: bytes | str = b"", env: Mapping[str, str] | None = None) -> str:
        return self.raw(*argv, stdin=stdin, env=env).decode(errors="surrogateescape")

    def raw(self, *argv: str, stdin: bytes | str = b"", env: Mapping[str, str] | None = None) -> bytes:
        done = subprocess.run(
            ("git", f"--git-dir={self.bare}", *argv),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            env=environment() | dict(env or {}),
            capture_output=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise GitError(done.stderr.decode(errors="replace").strip())
        return done.stdout

    def says(self, *argv: str) -> bool:
        try:
            self.raw(*argv)
        except GitError:
            return False
        return True

    def refs(self, prefix: str = "refs/") -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        pairs = (line.split(" ") for line in lines)
        return {ref: sha for ref, sha in pairs if ref.startswith(prefix)}

    def resolve(self, name: str) -> str | None:
        """Return the commit that a branch, a full ref or a commit id names."""
        for candidate in (f"refs/heads/{name}", name):
            try:
                return self.git("rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}").strip()
            except GitError:
                continue
        return None

    def kind(self, sha: str) -> str | None:
        try:
            return self.git("cat-file", "-t", sha).strip()
        except GitError:
            return None

    def is_ancestor(self, old: str, new: str) -> bool:
        return self.says("merge-base", "--is-ancestor", old, new)

    def merge_base(self, one: str, other: str) -> str | None:
        try:
            return self.git("merge-base", one, other).strip()
        except GitError:
            return None

    def move(self, ref: str, new: str, old: str | None) -> bool:
        """Compare and swap; `old` None means that the ref must not exist."""
        return self.says("update-ref", ref, new, old or ZERO)

    def commit(self, sha: str) -> Commit:
        form = "%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
        parts = self.git("show", "-s", "--no-show-signature", f"--format={form}", sha).split("\0")
        author = {"name": parts[2], "email": parts[3], "date": _zulu(parts[4])}
        committer = {"name": parts[5], "email": parts[6], "date": _zulu(parts[7])}
        return Commit(sha, parts[0], tuple(parts[1].split()), author, committer, parts[8].rstrip("\n"))

    def log(self, start: str, *extra: str, path: str | None = None) -> list[str]:
        where = ("--", path) if path else ()
        return self.git("log", "--format=%H", *extra, start, *where).split()

    def entries(self, tree: str, *, recursive: bool = False, path: str | None = None) -> list[TreeEntry]:
        flags = ("-r", "-t") if recursive else ()
        where = ("--", path) if path else ()
        found = []
        for line in self.git("ls-tree", "-z", "-l", *flags, tree, *where).split("\0")[:-1]:
            meta, _, name = line.partition("\t")
            mode, kind, sha, size = meta.split()
            found.append(TreeEntry(mode, kind, sha, None if size == "-" else int(size), name))
        return found

    def write_blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content).strip()

    def write_tree(self, base: str | None, changes: Iterable[tuple[str, str, str | None]]) -> str:
        """Return the tree of `base` with (path, mode, sha) put in, or taken out where sha is None."""
        with tempfile.TemporaryDirectory(prefix="lab-index-") as scratch:
            env = {"GIT_INDEX_FILE": f"{scratch}/index"}
            if base is not None:
                self.raw("read-tree", base, env=env)
            lines = "".join(f"{mode if sha else '0'} {sha or ZERO}\t{path}\0" for path, mode, sha in changes)
            self.raw("update-index", "-z", "--replace", "--index-info", stdin=lines, env=env)
            return self.git("write-tree", env=env).strip()

    def write_commit(
        self,
        tree: str,
        parents: Iterable[str],
        message: str,
        author: Mapping[str, str],
        committer: Mapping[str, str],
    ) -> str:
        env = _identity("AUTHOR", author) | _identity("COMMITTER", committer)
        links = [part for parent in parents for part in ("-p", parent)]
        return self.git("commit-tree", tree, *links, stdin=message, env=env).strip()

    def merge_tree(self, ours: str, theirs: str) -> str | None:
        """Return the tree of the merge, None when it conflicts."""
        try:
            return self.git("merge-tree", "--write-tree", ours, theirs).split()[0]
        except GitError:
            return None

    def add(self, branch: str, files: Mapping[str, str | bytes], message: str) -> str:
        """Commit files on a branch as a person at a work tree would, and return the commit."""
        old = self.resolve(branch)
        blobs = [(p, self.write_blob(t.encode() if isinstance(t, str) else t)) for p, t in files.items()]
        tree = self.write_tree(old, [(path, "100644", blob) for path, blob in blobs])
        commit = self.write_commit(tree, [old] if old else [], message, IDENTITY, IDENTITY)
        if not self.move(f"refs/heads/{branch}", commit, old):
            raise GitError(f"{branch} moved while it was seeded")
        return commit


def environment() -> dict[str, str]:
    """Git without the machine's or the user's configuration."""
    return {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_LITERAL_PATHSPECS": "1",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
    }


def _identity(role: str, person: Mapping[str, str]) -> dict[str, str]:
    named = {f"GIT_{role}_NAME": person["name"], f"GIT_{role}_EMAIL": person["email"]}
    return named | ({f"GIT_{role}_DATE": person["date"]} if person.get("date") else {})


def _zulu(stamp: str) -> str:
    return datetime.fromisoformat(stamp).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
