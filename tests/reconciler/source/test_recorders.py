"""Both recorders keep the same promises, whatever the host does: one suite for all ways to a branch."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.source.git_recorder import GitRecorder
from reconciler.source.github import GitHubHost, GitHubRecorder
from reconciler.source.recording import (
    AlreadyRecordedError,
    Commit,
    Person,
    Recorder,
    RecordUnavailableError,
    RetryPolicy,
    decision_id_of,
)
from reconciler.source.repository import Repository
from tests.lab.github.faults import Kind
from tests.lab.github.server import GitHub

BOT = Person("Clusterwright", "clusterwright@localhost")
APPROVER = Person("Example Approver", "approver@example.com")
PACE = RetryPolicy(tries=5, least_seconds=0.01, most_seconds=0.2)
DIRECTORY = "incidents/2026/11/gpu-01-abc123"


def an_event(name: str = "approval-1.yaml", decision: str = "d-1", text: str = "kind: Approval\n") -> Commit:
    return Commit(
        files={f"{DIRECTORY}/{name}": text},
        subject="Approve reboot of gpu-01",
        body="Asked for by the thread.",
        decision_id=decision,
        trailers=(("Incident", "gpu-01-abc123"), ("Node", "gpu-01")),
        author=APPROVER,
    )


@dataclass
class Ways:
    """The branch of one GitHub, and a maker of recorders for it; each has its own mirror."""

    github: GitHub
    make: Callable[[], Recorder]

    def git(self, *argv: str) -> str:
        return self.github.store.git(*argv)

    def commits(self, decision: str) -> list[str]:
        """Return the commits on the branch that carry a decision."""
        form = "--format=%H %(trailers:key=Decision-Id,valueonly,separator=%x2C)"
        lines = [line.split() for line in self.git("log", form, "incidents").splitlines()]
        return [line[0] for line in lines if line[1:] == [decision]]

    def assert_sound(self) -> None:
        """Linear history, and nothing that fsck minds."""
        assert self.git("rev-list", "--merges", "incidents") == ""
        assert self.git("fsck", "--strict", "--no-dangling").strip() in (
            "",
            "notice: HEAD points to an unborn branch (main)",
        )


def persist(recorder: Recorder, event: Commit, tries: int = 6) -> str:
    """Record as the programs do: an event that could not be recorded is tried again."""
    for _ in range(tries):
        try:
            return recorder.record(event)
        except RecordUnavailableError as error:
            last = error
    raise last


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with GitHub(tmp_path / "host") as host:
        host.seed({"cluster.yaml": "kind: Cluster\n"})
        (tmp_path / "token").write_text(host.token)
        yield host


@pytest.fixture(params=["rest", "http push", "file push"])
def ways(request: pytest.FixtureRequest, github: GitHub, tmp_path: Path) -> Ways:
    token, numbers = tmp_path / "token", iter(range(100))

    def push_to(url: str) -> Recorder:
        mirror = tmp_path / f"mirror-{next(numbers)}"
        repository = Repository(url, mirror, token, limit=timedelta(seconds=20))
        return GitRecorder(repository, "incidents", BOT, PACE)

    def rest() -> Recorder:
        host = GitHubHost(github.api_url, github.repository, token, between_writes=timedelta(0))
        return GitHubRecorder(host, "incidents", BOT, PACE)

    makers = {
        "rest": rest,
        "http push": lambda: push_to(github.clone_url),
        "file push": lambda: push_to(str(github.bare)),
    }
    return Ways(github, makers[request.param])


def test_the_first_event_creates_the_branch_apart_from_main(ways: Ways) -> None:
    commit = ways.make().record(an_event())
    assert ways.git("rev-parse", "incidents").strip() == commit
    assert ways.git("rev-list", "--count", "incidents").strip() == "1"
    assert ways.git("show", f"incidents:{DIRECTORY}/approval-1.yaml") == "kind: Approval\n"
    ways.assert_sound()


def test_the_same_event_twice_is_one_commit(ways: Ways) -> None:
    recorder = ways.make()
    first = recorder.record(an_event())
    later = recorder.record(an_event("outcome-1.yaml", "d-2"))
    assert recorder.record(an_event()) == first
    assert ways.make().record(an_event()) == first
    assert ways.git("rev-parse", "incidents").strip() == later


def test_a_second_event_stands_on_the_first_and_keeps_its_files(ways: Ways) -> None:
    recorder = ways.make()
    first = recorder.record(an_event())
    second = recorder.record(an_event("repair-1.yaml", "d-2"))
    assert ways.git("rev-parse", f"{second}^").strip() == first
    names = ways.git("ls-tree", "-r", "--name-only", "incidents").split()
    assert names == [f"{DIRECTORY}/approval-1.yaml", f"{DIRECTORY}/repair-1.yaml"]


def test_a_rival_is_told_the_path_and_the_commit(ways: Ways) -> None:
    first = ways.make().record(an_event(decision="d-1"))
    with pytest.raises(AlreadyRecordedError) as log_once:
        ways.make().record(an_event(decision="d-2"))
    assert (log_once.value.path, log_once.value.commit) == (f"{DIRECTORY}/approval-1.yaml", first)
    assert ways.git("rev-list", "--count", "incidents").strip() == "1"


def test_a_file_that_somebody_pushed_by_hand_is_never_overwritten(ways: Ways) -> None:
    by_hand = ways.github.seed({f"{DIRECTORY}/approval-1.yaml": "mine\n"}, branch="incidents")
    with pytest.raises(AlreadyRecordedError) as log_once:
        ways.make().record(an_event())
    assert log_once.value.commit == by_hand


def test_a_rejected_event_with_several_files_leaves_none_of_them(ways: Ways) -> None:
    recorder = ways.make()
    recorder.record(an_event())
    files = {f"{DIRECTORY}/repair-1.yaml": "x\n", f"{DIRECTORY}/approval-1.yaml": "y\n"}
    with pytest.raises(AlreadyRecordedError):
        recorder.record(Commit(files=files, subject="Approve", decision_id="d-9"))
    assert "repair-1" not in ways.git("ls-tree", "-r", "--name-only", "incidents")


def test_the_author_is_the_approver_and_the_committer_is_the_bot(ways: Ways) -> None:
    recorder = ways.make()
    recorder.record(an_event())
    form = "--format=%an <%ae>|%cn <%ce>"
    assert ways.git("log", "-1", form, "incidents").strip() == (
        "Example Approver <approver@example.com>|Clusterwright <clusterwright@localhost>"
    )
    recorder.record(Commit(files={f"{DIRECTORY}/closed.yaml": "x\n"}, subject="Close", decision_id="d-2"))
    assert ways.git("log", "-1", "--format=%an|%cn", "incidents").strip() == "Clusterwright|Clusterwright"


def test_the_trailers_are_read_by_git(ways: Ways) -> None:
    ways.make().record(an_event())
    message = ways.git("log", "-1", "--format=%B", "incidents")
    parsed = subprocess.run(
        ("git", "interpret-trailers", "--parse"), input=message, capture_output=True, text=True, check=True
    )
    assert parsed.stdout.splitlines() == [
        "Incident: gpu-01-abc123",
        "Node: gpu-01",
        "Decision-Id: d-1",
    ]


def test_text_in_any_language_arrives_unchanged(ways: Ways) -> None:
    text = "reason: 温度が高い, überhitzt\n"
    ways.make().record(an_event(text=text))
    assert (
        ways.git("show", f"incidents:{DIRECTORY}/approval-1.yaml").encode(errors="surrogateescape").decode()
        == text
    )


def test_eight_events_of_two_writers_end_in_one_line_with_nothing_lost(ways: Ways) -> None:
    writers = [ways.make(), ways.make()]
    done: dict[str, str] = {}

    def write(writer: int, count: int) -> None:
        decision = f"d-{writer}-{count}"
        done[decision] = persist(writers[writer], an_event(f"file-{writer}-{count}.yaml", decision))

    threads = [threading.Thread(target=write, args=(w, n)) for w in range(2) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 8
    assert all(ways.commits(decision) == [commit] for decision, commit in done.items())
    assert ways.git("rev-list", "--count", "incidents").strip() == "8"
    ways.assert_sound()


def test_of_eight_rivals_for_one_path_one_wins_and_the_others_name_it(ways: Ways) -> None:
    ways.make().record(an_event("opened.yaml", "d-0"))
    won: list[str] = []
    log_once: list[str] = []

    def write(count: int) -> None:
        try:
            won.append(persist(ways.make(), an_event(decision=f"d-{count + 1}")))
        except AlreadyRecordedError as error:
            log_once.append(error.commit)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert log_once == won * 7
    ways.assert_sound()


REST_ROUTES = (
    ("GET", r"/git/ref/"),
    ("GET", r"/git/commits/"),
    ("GET", r"/contents/"),
    ("GET", r"/commits$"),
    ("POST", r"/git/trees"),
    ("POST", r"/git/commits"),
    ("GET", r"/compare/"),
    ("PATCH", r"/git/refs/"),
)
PUSH_ROUTES = (("GET", r"/info/refs"), ("POST", r"/git-upload-pack"), ("POST", r"/git-receive-pack"))
NEVER_LAGS = (("GET", r"/git/commits/"), ("POST", r"/git/trees"), ("POST", r"/git-receive-pack"))
"""Routes that come after no write of the same event, so that a lagging read cannot hit them."""

KINDS: tuple[Kind, ...] = (
    "done-then-502",
    "reply-lost",
    "limited",
    "not-there-yet",
    "not-fast-forward",
    "expired",
    "forbidden",
    "unavailable",
    "slow",
    "garbled",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_no_fault_on_any_route_doubles_or_loses_an_event(
    ways: Ways, kind: Kind, request: pytest.FixtureRequest
) -> None:
    recorder = ways.make()
    recorder.record(an_event("opened.yaml", "d-0"))
    routes = REST_ROUTES if isinstance(recorder, GitHubRecorder) else PUSH_ROUTES
    struck = 0
    for count, (method, path) in enumerate(routes, start=1):
        ways.github.faults.add(kind, method, path, seconds=0.05)
        event = an_event(f"file-{count}.yaml", f"d-{count}")
        commit = persist(recorder, event)
        assert persist(recorder, event) == commit
        assert ways.commits(f"d-{count}") == [commit], (kind, method, path)
        struck += not (kind == "not-there-yet" and (method, path) in NEVER_LAGS)
        assert ways.github.faults.struck == struck, (kind, method, path)
        ways.github.faults.clear()
    ways.assert_sound()


@pytest.mark.parametrize("ways", ["rest"], indirect=True)
def test_a_file_that_a_lagging_read_does_not_show_is_not_written_over(ways: Ways) -> None:
    recorder = ways.make()
    first = recorder.record(an_event())
    ways.github.faults.add("not-there-yet", "GET", r"/contents/")
    ways.github.faults.wrote()
    assert recorder.record(an_event()) == first
    ways.github.faults.add("not-there-yet", "GET", r"/contents/")
    ways.github.faults.wrote()
    with pytest.raises(AlreadyRecordedError):
        recorder.record(an_event(decision="d-2", text="kind: Rejection\n"))
    assert ways.github.faults.struck == 2
    assert ways.git("rev-list", "--count", "incidents").strip() == "1"


@pytest.mark.parametrize("kind", ["done-then-502", "reply-lost"])
@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_a_lost_reply_is_read_back_and_needs_no_second_try(ways: Ways, kind: Kind) -> None:
    recorder = ways.make()
    recorder.record(an_event("opened.yaml", "d-0"))
    ways.github.faults.add(kind, "PATCH", r"/git/refs/")
    ways.github.faults.add(kind, "POST", r"/git-receive-pack")
    commit = recorder.record(an_event())
    assert ways.github.faults.struck == 1
    assert ways.commits("d-1") == [commit]


@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_the_reply_to_the_creation_of_the_branch_may_be_lost_too(ways: Ways) -> None:
    ways.github.faults.add("reply-lost", "POST", r"/git/refs|/git-receive-pack")
    commit = persist(ways.make(), an_event())
    assert ways.commits("d-1") == [commit]


@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_a_host_that_is_down_is_named_and_the_event_is_recorded_when_it_is_back(ways: Ways) -> None:
    recorder = ways.make()
    recorder.record(an_event("opened.yaml", "d-0"))
    ways.github.stop()
    with pytest.raises(RecordUnavailableError, match=r"cannot be reached|unable to access"):
        recorder.record(an_event())
    ways.github.start()
    commit = recorder.record(an_event())
    assert ways.commits("d-1") == [commit]


@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_a_renewed_token_is_used_without_a_restart(ways: Ways, tmp_path: Path) -> None:
    recorder = ways.make()
    recorder.record(an_event("opened.yaml", "d-0"))
    renewed = ways.github.renew_token()
    with pytest.raises(RecordUnavailableError, match=r"refused the token \(401\); renew it in .*token"):
        recorder.record(an_event())
    (tmp_path / "token").write_text(renewed)
    recorder.record(an_event())
    (tmp_path / "token").unlink()
    with pytest.raises(RecordUnavailableError, match="token cannot be read"):
        recorder.record(an_event("x.yaml", "d-3"))


@pytest.mark.parametrize("ways", ["rest", "http push"], indirect=True)
def test_a_protected_branch_is_named_and_nothing_is_recorded(ways: Ways, tmp_path: Path) -> None:
    ways.make().record(an_event("opened.yaml", "d-0"))
    ways.github.protect("incidents")
    (tmp_path / "token").write_text(ways.github.add_user("example-person", "person@example.com"))
    with pytest.raises(RecordUnavailableError, match=r"rule|pre-receive hook declined"):
        ways.make().record(an_event())
    assert ways.commits("d-1") == []


def test_an_event_must_create_files_with_plain_paths() -> None:
    with pytest.raises(ValueError, match="at least one file"):
        Commit(files={}, subject="x", decision_id="d")
    for path in (
        "../x",
        "/etc/passwd",
        "a//b",
        "incidents/.git/config",
        "incidents/x\n",
        "opened.yaml",
        "a/b c",
    ):
        with pytest.raises(ValueError, match="not a path"):
            Commit(files={path: ""}, subject="x", decision_id="d")


@pytest.mark.parametrize(
    "reason",
    [
        "broken\n\nDecision-Id: forged",
        "x\n---\ny",
        "x\n\n--- a/file\n+++ b/file",
        "a\x00b",
        "Approved-by: Eve <e@x>",
    ],
)
def test_what_people_type_can_neither_forge_nor_hide_a_trailer(reason: str) -> None:
    event = Commit(
        files={"a/b": ""},
        subject=f"Reject: {reason}",
        body=reason,
        decision_id="d-1",
        trailers=(("Approved-by", f"Example Approver\n{reason} <approver@example.com>"), ("Node", "gpu-01")),
    )
    parsed = subprocess.run(
        ("git", "interpret-trailers", "--parse"),
        input=event.message, capture_output=True, text=True, check=True,
    )  # fmt: skip
    keys = [line.partition(":")[0] for line in parsed.stdout.splitlines()]
    assert keys == ["Approved-by", "Node", "Decision-Id"]
    assert parsed.stdout.splitlines()[-1] == "Decision-Id: d-1"
    assert decision_id_of(event.message) == "d-1"


def test_the_wait_after_a_lost_race_doubles_and_is_bounded() -> None:
    waits: list[tuple[float, float]] = []
    slept: list[float] = []

    def most(least: float, upper: float) -> float:
        waits.append((least, upper))
        return upper

    pace = RetryPolicy(sleep=slept.append, uniform=most)
    for lost in range(1, 9):
        pace.wait(lost)
    assert slept == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert {least for least, _ in waits} == {0.5}
