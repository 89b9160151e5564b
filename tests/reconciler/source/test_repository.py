"""The mirror against real git: what it reads, what it refuses, and how it fails."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.source.git import RepositoryUnavailableError, mask
from reconciler.source.git_recorder import GitRecorder
from reconciler.source.recording import Commit, Person, RecordUnavailableError, RetryPolicy
from reconciler.source.repository import Repository, RewrittenBranch, TreeEntry
from tests.lab.github.server import GitHub
from tests.lab.github.store import Store

LIMIT = timedelta(seconds=20)
BOT = Person("Clusterwright", "clusterwright@localhost")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    bare = Store(tmp_path / "remote.git")
    bare.create()
    return bare


@pytest.fixture
def repository(store: Store, tmp_path: Path) -> Repository:
    return Repository(str(store.bare), tmp_path / "state" / "mirror", limit=LIMIT)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with GitHub(tmp_path / "host") as host:
        host.seed({"cluster.yaml": "kind: Cluster\n"})
        (tmp_path / "token").write_text(host.token + "\n")
        yield host


def over_http(github: GitHub, tmp_path: Path, limit: timedelta = LIMIT) -> Repository:
    return Repository(github.clone_url, tmp_path / "mirror", tmp_path / "token", limit=limit)


def children() -> dict[int, str]:
    """Return the command line of every process below this one."""
    found: dict[int, str] = {}
    below = {os.getpid()}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue
        if parent in below:
            below.add(int(entry.name))
            found[int(entry.name)] = line
    return found


# ---- reading


def test_an_empty_remote_has_no_tips_and_is_no_error(repository: Repository) -> None:
    assert repository.fetch() == ()
    assert repository.tip("main") is None
    assert repository.tip("incidents") is None


def test_tips_follow_the_remote(store: Store, repository: Repository) -> None:
    first = store.add("main", {"a.yaml": "1\n"}, "one")
    repository.fetch()
    assert repository.tip("main") == first
    second = store.add("main", {"a.yaml": "2\n"}, "two")
    assert repository.tip("main") == first
    repository.fetch()
    assert repository.tip("main") == second


def test_only_the_configured_branches_are_fetched(store: Store, repository: Repository) -> None:
    store.add("main", {"a.yaml": "1\n"}, "one")
    store.add("secret", {"b.yaml": "1\n"}, "other")
    repository.fetch()
    assert repository.tip("main") is not None
    assert repository.tip("secret") is None


def test_a_poll_without_news_is_one_round_trip(github: GitHub, tmp_path: Path) -> None:
    repository = over_http(github, tmp_path)
    repository.fetch()
    before = len(github.requests)
    repository.fetch()
    paths = [request.path.rpartition("/")[2] for request in github.requests[before:]]
    assert paths == ["refs?service=git-upload-pack", "git-upload-pack"]


def test_a_listing_names_mode_blob_and_size(store: Store, repository: Repository) -> None:
    commit = store.add("main", {"pools/gpu.yaml": "12345\n", "top.yaml": ""}, "files")
    repository.fetch()
    listing = repository.listing(commit)
    assert {path: (entry.mode, entry.size) for path, entry in listing.items()} == {
        "pools/gpu.yaml": ("100644", 6),
        "top.yaml": ("100644", 0),
    }
    assert list(repository.listing(commit, "pools")) == ["pools/gpu.yaml"]
    assert repository.listing(commit, "poo") == {}
    assert repository.listing(commit, "pools/*") == {}


def test_files_are_read_byte_for_byte(store: Store, repository: Repository) -> None:
    files = {"a": b"", "b": b"\n\n", "c": bytes(range(256)) * 100, "d/é/名前.yaml": "ü\n".encode()}
    commit = store.add("main", files, "bytes")
    repository.fetch()
    assert repository.read(commit, [*files, "absent", "d"]) == files
    assert repository.read(commit, []) == {}


def test_a_thousand_files_are_read_in_one_call(store: Store, repository: Repository) -> None:
    files = [f"d{n % 7}/file-{n:04}.yaml" for n in range(1200)]
    blob = store.write_blob(b"same\n")
    tree = store.write_tree(None, [(path, "100644", blob) for path in files])
    commit = store.write_commit(
        tree, [], "many", {"name": "E", "email": "e@x"}, {"name": "E", "email": "e@x"}
    )
    store.move("refs/heads/main", commit, None)
    repository.fetch()
    assert repository.read(commit, files) == dict.fromkeys(files, b"same\n")


def test_links_and_submodules_are_listed_as_data_and_never_read(store: Store, repository: Repository) -> None:
    link, other = store.write_blob(b"/etc/passwd"), store.add("other", {"x": "x"}, "a commit")
    changes = [("link.yaml", "120000", link), ("module", "160000", other), ("real.yaml", "100755", link)]
    tree = store.write_tree(None, changes)
    person = {"name": "Example Operator", "email": "operator@example.com"}
    commit = store.write_commit(tree, [], "odd entries", person, person)
    store.move("refs/heads/main", commit, None)
    repository.fetch()
    listing = repository.listing(commit)
    assert listing["link.yaml"] == TreeEntry("120000", link, 11)
    assert listing["module"] == TreeEntry("160000", other, None)
    assert [path for path, entry in listing.items() if entry.regular] == ["real.yaml"]
    assert repository.read(commit, listing) == {"real.yaml": b"/etc/passwd"}


def test_paths_that_are_not_utf8_keep_their_bytes(store: Store, repository: Repository) -> None:
    blob = store.write_blob(b"x\n")
    env = {"GIT_INDEX_FILE": str(store.bare / "odd-index")}
    store.raw(
        "update-index", "-z", "--index-info", stdin=b"100644 " + blob.encode() + b"\tna\xefve.yaml\0", env=env
    )
    tree = store.git("write-tree", env=env).strip()
    person = {"name": "E", "email": "e@x"}
    commit = store.write_commit(tree, [], "odd name", person, person)
    store.move("refs/heads/main", commit, None)
    repository.fetch()
    (path,) = repository.listing(commit)
    assert os.fsencode(path) == b"na\xefve.yaml"
    assert repository.read(commit, [path]) == {path: b"x\n"}


def test_who_added_a_file_is_the_first_commit_that_has_it(store: Store, repository: Repository) -> None:
    first = store.add("incidents", {"i/opened.yaml": "1\n"}, "Open\n\nNode: gpu-01\nDecision-Id: d-7\n")
    store.add("incidents", {"i/opened.yaml": "2\n"}, "Meddle\n\nDecision-Id: d-8\n")
    tip = store.add("incidents", {"i/closed.yaml": "x\n"}, "Close")
    repository.fetch()
    addition = repository.addition(tip, "i/opened.yaml")
    assert addition is not None
    assert (addition.commit, addition.decision_id) == (first, "d-7")
    closed = repository.addition(tip, "i/closed.yaml")
    assert closed is not None
    assert (closed.commit, closed.decision_id) == (tip, "")
    assert repository.addition(tip, "i/absent.yaml") is None


def test_a_commit_must_be_a_full_id(repository: Repository) -> None:
    for name in ("main", "HEAD", "--help", "abc123", "a" * 41):
        with pytest.raises(ValueError, match="not a full commit id"):
            repository.listing(name)


# ---- rewritten history


def test_a_force_push_is_told_and_the_last_good_tip_stays(store: Store, repository: Repository) -> None:
    root = store.add("main", {"a": "1"}, "one")
    known = store.add("main", {"a": "2"}, "two")
    repository.fetch()
    store.git("update-ref", "refs/heads/main", root)
    rewritten = store.add("main", {"a": "3"}, "another two")
    log_once = RewrittenBranch("main", known, rewritten)
    assert repository.fetch() == (log_once,)
    assert repository.tip("main") == known
    assert repository.fetch() == (log_once,)
    repository.accept(log_once)
    assert repository.tip("main") == rewritten
    assert repository.fetch() == ()


def test_a_rewrite_is_still_known_after_a_restart(store: Store, tmp_path: Path) -> None:
    known = store.add("main", {"a": "1"}, "one")
    Repository(str(store.bare), tmp_path / "m").fetch()
    store.git("update-ref", "-d", "refs/heads/main")
    other = store.add("main", {"a": "9"}, "unrelated")
    again = Repository(str(store.bare), tmp_path / "m")
    assert again.fetch() == (RewrittenBranch("main", known, other),)


def test_a_deleted_branch_keeps_its_last_good_tip_and_heals(store: Store, repository: Repository) -> None:
    known = store.add("main", {"a": "1"}, "one")
    repository.fetch()
    store.git("update-ref", "-d", "refs/heads/main")
    assert repository.fetch() == (RewrittenBranch("main", known, None),)
    assert repository.tip("main") == known
    store.git("update-ref", "refs/heads/main", known)
    assert repository.fetch() == ()


def test_going_back_to_an_older_commit_is_a_rewrite_too(store: Store, repository: Repository) -> None:
    first = store.add("main", {"a": "1"}, "one")
    second = store.add("main", {"a": "2"}, "two")
    repository.fetch()
    store.git("update-ref", "refs/heads/main", first)
    assert repository.fetch() == (RewrittenBranch("main", second, first),)


def test_one_rewritten_branch_does_not_stop_the_other(store: Store, repository: Repository) -> None:
    store.add("main", {"a": "1"}, "one")
    known = store.add("incidents", {"i/x": "1"}, "open")
    repository.fetch()
    store.git("update-ref", "-d", "refs/heads/incidents")
    forged = store.add("incidents", {"i/y": "1"}, "forged")
    newer = store.add("main", {"a": "2"}, "two")
    assert repository.fetch() == (RewrittenBranch("incidents", known, forged),)
    assert repository.tip("main") == newer


def test_nothing_is_recorded_on_a_rewritten_branch(store: Store, repository: Repository) -> None:
    recorder = GitRecorder(repository, "incidents", BOT, RetryPolicy(least_seconds=0.01))
    known = recorder.record(Commit({"i/opened.yaml": "x\n"}, "Open", "d-1"))
    store.git("update-ref", "-d", "refs/heads/incidents")
    forged = store.add("incidents", {"i/other.yaml": "y\n"}, "forged")
    with pytest.raises(RecordUnavailableError, match=f"rewritten from {known} to {forged}"):
        recorder.record(Commit({"i/closed.yaml": "x\n"}, "Close", "d-2"))
    assert store.resolve("incidents") == forged


def test_ancestry_of_an_unknown_commit_is_unknown(store: Store, repository: Repository) -> None:
    first = store.add("main", {"a": "1"}, "one")
    second = store.add("main", {"a": "2"}, "two")
    repository.fetch()
    assert repository.is_ancestor(first, second) is True
    assert repository.is_ancestor(second, first) is False
    assert repository.is_ancestor("0" * 39 + "1", second) is None


# ---- failing


def test_what_was_read_stays_readable_while_the_host_is_down(github: GitHub, tmp_path: Path) -> None:
    repository = over_http(github, tmp_path)
    repository.fetch()
    tip = repository.tip("main")
    assert tip is not None
    github.stop()
    with pytest.raises(RepositoryUnavailableError, match=r"reading http.* failed: fatal: unable to access"):
        repository.fetch()
    assert repository.tip("main") == tip
    assert repository.read(tip, ["cluster.yaml"]) == {"cluster.yaml": b"kind: Cluster\n"}
    github.start()
    newer = github.seed({"cluster.yaml": "kind: Cluster # 2\n"})
    repository.fetch()
    assert repository.tip("main") == newer


def test_a_host_that_never_answers_is_given_up_and_leaves_no_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/example/cluster.git"
        repository = Repository(url, tmp_path / "m", limit=timedelta(seconds=1))
        started = time.monotonic()
        with pytest.raises(RepositoryUnavailableError, match="took over 1 s and was stopped"):
            repository.fetch()
        assert time.monotonic() - started < 5
    assert not [line for line in children().values() if "git" in line and str(tmp_path) in line]


def test_the_token_is_in_no_command_line_and_no_error(github: GitHub, tmp_path: Path) -> None:
    repository = over_http(github, tmp_path, limit=timedelta(seconds=2))
    github.faults.add("slow", "GET", "info/refs", seconds=30)
    errors: list[str] = []

    def fetch() -> None:
        try:
            repository.fetch()
        except RepositoryUnavailableError as error:
            errors.append(str(error))

    thread = threading.Thread(target=fetch)
    thread.start()
    seen: set[str] = set()
    while thread.is_alive():
        seen |= set(children().values())
        time.sleep(0.05)
    thread.join()
    assert any("ls-remote" in line for line in seen)
    assert any("remote-http" in line for line in seen)
    assert not [line for line in [*seen, *errors] if github.token in line or "Basic" in line]
    files = [path for path in (tmp_path / "mirror").rglob("*") if path.is_file()]
    assert not [path for path in files if github.token.encode() in path.read_bytes()]


def test_a_refused_token_is_named_by_its_file(github: GitHub, tmp_path: Path) -> None:
    repository = over_http(github, tmp_path)
    (tmp_path / "token").write_text("ghs_wrong")
    with pytest.raises(RepositoryUnavailableError) as log_once:
        repository.fetch()
    assert f"refused the token (401); renew it in {tmp_path / 'token'}" in str(log_once.value)
    assert "ghs_wrong" not in str(log_once.value)
    (tmp_path / "token").unlink()
    with pytest.raises(RepositoryUnavailableError, match="token cannot be read"):
        repository.fetch()
    with pytest.raises(RepositoryUnavailableError, match="set token_file"):
        Repository(github.clone_url, tmp_path / "other").fetch()


def test_errors_hide_secrets_in_every_form() -> None:
    basic = "eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA=="
    text = f"ghs_secret {basic} https://user:pw@host/x"
    assert mask(text, "ghs_secret") == "*** *** https://***@host/x"
    assert mask("plain", "") == "plain"


@pytest.mark.parametrize("url", ["", "-oProxyCommand=x", "https://user:pw@example.com/x.git"])
def test_a_url_that_must_not_be_used_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="git url"):
        Repository(url, tmp_path / "m")


@pytest.mark.parametrize("url", ["ext::sh -c true", "git://127.0.0.1:1/x", "ftp://127.0.0.1:1/x"])
def test_other_transports_are_not_allowed(url: str, tmp_path: Path) -> None:
    with pytest.raises(RepositoryUnavailableError, match="not allowed"):
        Repository(url, tmp_path / "m").fetch()


@pytest.mark.parametrize(
    "branch", ["", "-x", "a..b", "a b", "a:b", "refs/heads/x.lock", "a//b", "a/", "x.", "+main", "a\nb", "*"]
)
def test_a_branch_name_must_be_plain(branch: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a branch name"):
        Repository("/x", tmp_path / "m", branches=(branch,))


def test_a_stale_lock_is_taken_away_and_a_fresh_one_is_not(store: Store, tmp_path: Path) -> None:
    repository = Repository(str(store.bare), tmp_path / "m", limit=timedelta(seconds=5))
    store.add("main", {"a": "1"}, "one")
    repository.fetch()
    newer = store.add("main", {"a": "2"}, "two")
    lock = tmp_path / "m" / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(RepositoryUnavailableError, match="lock"):
        repository.fetch()
    old = time.time() - 60
    os.utime(lock, (old, old))
    repository.fetch()
    assert repository.tip("main") == newer


def test_git_configuration_of_the_user_and_hooks_do_not_apply(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text('[url "/nowhere/"]\n\tinsteadOf = /\n[user]\n\tname = Somebody\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    repository = Repository(str(store.bare), tmp_path / "m")
    recorder = GitRecorder(repository, "incidents", BOT)
    recorder.record(Commit({"i/opened.yaml": "x\n"}, "Open", "d-1"))
    hook = tmp_path / "m" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    recorder.record(Commit({"i/closed.yaml": "x\n"}, "Close", "d-2"))
    assert not (tmp_path / "ran").exists()
    assert store.git("log", "-1", "--format=%an", "incidents").strip() == "Clusterwright"


def test_two_threads_may_fetch_and_record_with_one_mirror(store: Store, repository: Repository) -> None:
    recorder = GitRecorder(repository, "incidents", BOT, RetryPolicy(least_seconds=0.01, most_seconds=0.1))
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            repository.fetch()
            recorder.record(Commit({f"i/{number}.yaml": "x\n"}, "Open", f"d-{number}"))
        except (RepositoryUnavailableError, RecordUnavailableError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.git("rev-list", "--count", "incidents").strip() == "6"


def test_a_push_that_the_remote_declines_says_why(store: Store, repository: Repository) -> None:
    hook = store.bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'error: read-only for maintenance' >&2\nexit 1\n")
    with pytest.raises(RecordUnavailableError, match=r"pushing to incidents failed: .*declined"):
        GitRecorder(repository, "incidents", BOT).record(Commit({"i/x": "y"}, "Open", "d-1"))
    assert store.resolve("incidents") is None


def test_a_mirror_can_be_read_by_plain_git(store: Store, repository: Repository, tmp_path: Path) -> None:
    commit = store.add("main", {"a": "1"}, "one")
    repository.fetch()
    shown = subprocess.run(
        ("git", "-C", str(tmp_path / "state" / "mirror"), "rev-parse", "main"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == commit
