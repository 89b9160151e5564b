"""What is GitHub's alone: how each refusal is told, what is repeated, what it costs.

What both recorders promise is in test_recorder.
"""

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.source.github import GitHubHost, GitHubRecorder
from reconciler.source.recording import Commit, Person, RecordUnavailableError, RetryPolicy
from tests.lab.github.faults import Kind
from tests.lab.github.server import GitHub

BOT = Person("Clusterwright", "clusterwright@localhost")
EVENT = Commit({"incidents/2026/11/x/opened.yaml": "kind: Incident\n"}, "Open", "d-1")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with GitHub(tmp_path / "host") as host:
        host.seed({"cluster.yaml": "kind: Cluster\n"})
        host.seed({"incidents/2026/11/first/opened.yaml": "x\n"}, branch="incidents")
        (tmp_path / "token").write_text(host.token)
        yield host


def a_recorder(github: GitHub, tmp_path: Path, repository: str = GitHub.repository) -> GitHubRecorder:
    host = GitHubHost(github.api_url, repository, tmp_path / "token", timedelta(seconds=2), timedelta(0))
    return GitHubRecorder(host, "incidents", BOT, RetryPolicy(tries=3, least_seconds=0.01, most_seconds=0.02))


def test_an_event_of_many_files_is_three_writes(github: GitHub, tmp_path: Path) -> None:
    files = {f"incidents/2026/11/x/file-{n}.yaml": f"{n}\n" for n in range(20)}
    a_recorder(github, tmp_path).record(Commit(files, "Many", "d-1"))
    writes = [f"{request.method} {request.path}" for request in github.requests if request.method != "GET"]
    assert writes == [
        "POST /repos/example/cluster/git/trees",
        "POST /repos/example/cluster/git/commits",
        "PATCH /repos/example/cluster/git/refs/heads/incidents",
    ]


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        ("expired", "/git/ref/", r"refused the token \(401\); renew it in .*token"),
        ("forbidden", "/git/trees", r"refused \(403\): Resource not accessible .* contents: write"),
        ("limited", "/git/commits", r"limits the rate \(403\)"),
        ("unavailable", "/git/trees", r"failed \(503\)"),
        ("garbled", "/git/trees", r"does not answer as GitHub does"),
        ("not-fast-forward", "/git/refs/", r"changed during each of 3 tries"),
    ],
)
def test_each_refusal_is_told_in_words_to_act_on(
    github: GitHub, tmp_path: Path, kind: Kind, path: str, reason: str
) -> None:
    github.faults.add(kind, path=path, times=50)
    with pytest.raises(RecordUnavailableError, match=reason) as log_once:
        a_recorder(github, tmp_path).record(EVENT)
    assert github.token not in str(log_once.value)
    assert github.store.git("rev-list", "--count", "incidents").strip() == "1"


def test_a_rate_limit_hands_on_how_long_to_wait_and_sleeps_for_none_of_it(
    github: GitHub, tmp_path: Path
) -> None:
    for method in ("GET", "POST", "PATCH"):
        github.faults.add("limited", method, times=1, seconds=600)
        started = time.monotonic()
        with pytest.raises(RecordUnavailableError) as log_once:
            a_recorder(github, tmp_path).record(EVENT)
        assert log_once.value.retry_after_seconds == 600
        assert time.monotonic() - started < 5
        github.faults.clear()


def test_reads_are_repeated_and_writes_are_not(github: GitHub, tmp_path: Path) -> None:
    github.faults.add("unavailable", "GET", "/git/ref/", times=2)
    a_recorder(github, tmp_path).record(EVENT)
    assert github.faults.struck == 2
    github.faults.add("unavailable", "POST", "/git/trees", times=2)
    with pytest.raises(RecordUnavailableError):
        a_recorder(github, tmp_path).record(Commit({"incidents/2026/11/x/b.yaml": "x\n"}, "B", "d-2"))
    assert github.faults.struck == 3


def test_a_request_without_an_answer_ends_at_the_timeout(github: GitHub, tmp_path: Path) -> None:
    github.faults.add("slow", "POST", "/git/trees", seconds=6)
    started = time.monotonic()
    with pytest.raises(RecordUnavailableError, match=r"cannot be reached \(ReadTimeout\)"):
        a_recorder(github, tmp_path).record(EVENT)
    assert time.monotonic() - started < 5


def test_a_ref_update_that_ran_into_the_timeout_but_was_done_is_found(github: GitHub, tmp_path: Path) -> None:
    github.faults.add("slow", "PATCH", "/git/refs/", seconds=3)
    recorder = a_recorder(github, tmp_path)
    with pytest.raises(RecordUnavailableError):
        recorder.record(EVENT)
    time.sleep(1.5)
    commit = recorder.record(EVENT)
    assert github.store.git("rev-list", "--count", "incidents").strip() == "2"
    assert github.store.resolve("incidents") == commit


def test_a_repository_that_the_token_cannot_see_is_named(github: GitHub, tmp_path: Path) -> None:
    with pytest.raises(RecordUnavailableError, match=r"no example/other, or the token may not"):
        a_recorder(github, tmp_path, "example/other").record(EVENT)


def test_an_empty_repository_is_named(tmp_path: Path) -> None:
    with GitHub(tmp_path / "empty") as host:
        (tmp_path / "token").write_text(host.token)
        with pytest.raises(RecordUnavailableError, match=r"\(409\): Git Repository is empty"):
            a_recorder(host, tmp_path).record(EVENT)


def test_no_log_at_any_level_holds_the_token(
    github: GitHub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        a_recorder(github, tmp_path).record(EVENT)
    assert caplog.records
    assert github.token not in caplog.text
