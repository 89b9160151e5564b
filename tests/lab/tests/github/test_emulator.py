"""The emulated GitHub as PyGithub, git and a webhook receiver see it."""

import hashlib
import hmac
import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from github import (
    Auth,
    BadCredentialsException,
    Github,
    GithubException,
    InputGitAuthor,
    InputGitTreeElement,
    UnknownObjectException,
)
from github.Repository import Repository

from tests.lab.github.server import GitHub
from tests.lab.github.store import environment


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHub]:
    with GitHub(tmp_path) as host:
        host.seed({"cluster.yaml": "kind: Cluster\n", "pools/gpu.yaml": "x: 1\n"})
        yield host
        assert host.store.git("fsck", "--strict", "--no-dangling") == ""


def as_user(github: GitHub, token: str | None = None) -> Repository:
    client = Github(
        base_url=github.api_url,
        auth=Auth.Token(token or github.token),
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )
    return client.get_repo(github.repository)


def call(
    github: GitHub, method: str, path: str, body: Any = None, token: str | None = None
) -> httpx.Response:
    headers = {"Authorization": f"token {token or github.token}"}
    url = f"{github.api_url}/repos/{github.repository}{path}"
    return httpx.request(method, url, json=body, headers=headers, timeout=10, trust_env=False)


def git(*argv: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    env = environment() | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "E",
        "GIT_AUTHOR_EMAIL": "e@example.com",
    }
    env |= {"GIT_COMMITTER_NAME": "E", "GIT_COMMITTER_EMAIL": "e@example.com"}
    return subprocess.run(
        ("git", *argv), cwd=cwd, env=env, capture_output=True, text=True, check=check, timeout=30
    )


def with_token(github: GitHub, token: str | None = None) -> str:
    return github.clone_url.replace("://", f"://x-access-token:{token or github.token}@")


def a_branch(github: GitHub, name: str, files: dict[str, str], start: str = "main") -> str:
    tip = github.store.resolve(start)
    assert tip is not None
    github.store.move(f"refs/heads/{name}", tip, None)
    return github.seed(files, branch=name)


# ---- who may ask


def test_without_a_token_or_with_a_wrong_one_nothing_is_told(github: GitHub) -> None:
    url = f"{github.api_url}/repos/{github.repository}"
    assert httpx.get(url, trust_env=False).status_code == 401
    with pytest.raises(BadCredentialsException):
        as_user(github, "ghs_wrong")
    old = github.token
    github.renew_token()
    with pytest.raises(BadCredentialsException):
        as_user(github, old)
    assert as_user(github).full_name == "example/cluster"


def test_another_repository_is_not_found(github: GitHub) -> None:
    client = Github(base_url=github.api_url, auth=Auth.Token(github.token), retry=None)
    with pytest.raises(UnknownObjectException):
        client.get_repo("example/other")
    assert client.get_user().login == "clusterwright[bot]"
    assert client.get_rate_limit().resources.core.remaining > 0


# ---- refs, trees, commits


def test_many_files_are_one_commit_by_the_documented_way(github: GitHub) -> None:
    repo = as_user(github)
    ref = repo.get_git_ref("heads/main")
    base = repo.get_git_commit(ref.object.sha)
    elements = [InputGitTreeElement(f"a/{n}.txt", "100644", "blob", content=f"{n}é\n") for n in range(3)]
    elements.append(InputGitTreeElement("pools/gpu.yaml", "100644", "blob", sha=None))
    tree = repo.create_git_tree(elements, base.tree)
    author = InputGitAuthor("Example <Approver>\n", "approver@example.com")
    commit = repo.create_git_commit("Add three\n\nNode: gpu-01", tree, [base], author=author)
    ref.edit(commit.sha, force=False)
    log = github.store.git("log", "-1", "--format=%H|%an|%ae|%cn|%s", "main").strip()
    assert log == f"{commit.sha}|Example Approver|approver@example.com|Example Approver|Add three"
    names = github.store.git("ls-tree", "-r", "--name-only", "main").split()
    assert names == ["a/0.txt", "a/1.txt", "a/2.txt", "cluster.yaml"]
    tree_names = {entry.path for entry in repo.get_git_tree(commit.sha, recursive=True).tree}
    assert tree_names == {"a", "a/0.txt", "a/1.txt", "a/2.txt", "cluster.yaml"}


def test_a_ref_moves_forward_only_unless_forced(github: GitHub) -> None:
    repo = as_user(github)
    ref = repo.get_git_ref("heads/main")
    first = repo.get_git_commit(ref.object.sha)
    second = github.seed({"x": "1"})
    sideways = repo.create_git_commit("Sideways", first.tree, [first])
    with pytest.raises(GithubException, match="not a fast forward") as told:
        ref.edit(sideways.sha, force=False)
    assert told.value.status == 422
    assert github.store.resolve("main") == second
    ref.edit(sideways.sha, force=True)
    assert github.store.resolve("main") == sideways.sha


def test_refs_are_created_listed_and_deleted_by_the_rules(github: GitHub) -> None:
    repo, tip = as_user(github), github.store.resolve("main") or ""
    repo.create_git_ref("refs/heads/incidents", tip)
    for name, sha, reason in (
        ("refs/heads/incidents", tip, "already exists"),
        ("heads/x", tip, "must start with"),
        ("refs/heads/x", "0" * 39 + "1", "does not exist"),
        ("refs/heads/x", "abc", "40 characters"),
    ):
        with pytest.raises(GithubException, match=reason) as told:
            repo.create_git_ref(name, sha)
        assert told.value.status == 422
    assert [ref.ref for ref in repo.get_git_matching_refs("heads/inc")] == ["refs/heads/incidents"]
    assert {branch.name for branch in repo.get_branches()} == {"main", "incidents"}
    assert repo.get_branch("incidents").commit.sha == tip
    repo.get_git_ref("heads/incidents").delete()
    with pytest.raises(UnknownObjectException):
        _ = repo.get_git_ref("heads/incidents").object.sha


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/git/trees", {"tree": []}, 422),
        ("POST", "/git/trees", {"tree": [{"path": "../x", "mode": "100644", "content": ""}]}, 422),
        ("POST", "/git/trees", {"tree": [{"path": "a/.GIT/x", "mode": "100644", "content": ""}]}, 422),
        ("POST", "/git/trees", {"tree": [{"path": "x", "mode": "777", "content": ""}]}, 422),
        ("POST", "/git/trees", {"tree": [{"path": "x", "mode": "100644", "sha": "0" * 40}]}, 422),
        (
            "POST",
            "/git/trees",
            {"base_tree": "0" * 40, "tree": [{"path": "x", "mode": "100644", "content": ""}]},
            422,
        ),
        ("POST", "/git/commits", {"message": "x", "tree": "0" * 40}, 422),
        ("POST", "/git/commits", {"message": "", "tree": "0" * 40}, 422),
        ("POST", "/git/commits", [], 400),
        ("GET", "/git/commits/main", None, 404),
        ("GET", "/git/blobs/" + "0" * 40, None, 404),
        ("GET", "/git/trees/nowhere", None, 404),
        ("GET", "/commits/nowhere", None, 422),
        ("GET", "/contents/nowhere", None, 404),
        ("GET", "/no/such/route", None, 404),
        ("PUT", "/git/refs", None, 405),
    ],
)
def test_what_github_refuses_is_refused_in_its_shape(
    github: GitHub, method: str, path: str, body: Any, status: int
) -> None:
    answer = call(github, method, path, body)
    assert answer.status_code == status
    assert answer.json()["status"] == str(status)
    assert answer.json()["message"]


def test_blobs_keep_every_byte(github: GitHub) -> None:
    repo = as_user(github)
    blob = repo.create_git_blob("AAH/gA==", "base64")
    assert github.store.raw("cat-file", "blob", blob.sha) == b"\x00\x01\xff\x80"
    assert repo.get_git_blob(blob.sha).size == 4


def test_commits_are_listed_by_path_and_page(github: GitHub) -> None:
    for number in range(5):
        github.seed({"log.txt": f"{number}\n"}, message=f"Number {number}")
    repo = as_user(github)
    assert [commit.commit.message for commit in repo.get_commits(path="log.txt")][::4] == [
        "Number 4",
        "Number 0",
    ]
    answer = call(github, "GET", "/commits?per_page=2&page=2")
    assert [each["commit"]["message"] for each in answer.json()] == ["Number 2", "Number 1"]
    assert 'rel="next"' in answer.headers["link"]
    assert f"{github.api_url}/repos/example/cluster/commits?" in answer.headers["link"]


def test_a_poll_with_an_etag_costs_no_body(github: GitHub) -> None:
    first = call(github, "GET", "/git/ref/heads/main")
    headers = {"Authorization": f"Bearer {github.token}", "If-None-Match": first.headers["etag"]}
    url = f"{github.api_url}/repos/example/cluster/git/ref/heads/main"
    assert httpx.get(url, headers=headers, trust_env=False).status_code == 304
    github.seed({"x": "1"})
    assert httpx.get(url, headers=headers, trust_env=False).status_code == 200


def test_addresses_in_answers_use_the_host_that_was_asked(github: GitHub) -> None:
    url = github.api_url.replace("127.0.0.1", "localhost") + "/repos/example/cluster/git/ref/heads/main"
    answer = httpx.get(url, headers={"Authorization": f"Bearer {github.token}"}, trust_env=False)
    assert answer.json()["url"].startswith(github.api_url.replace("127.0.0.1", "localhost"))
    assert "/git/refs/heads/main" in answer.json()["url"]


# ---- contents


def test_contents_follow_the_sha_rules(github: GitHub) -> None:
    repo = as_user(github)
    repo.create_file("new.yaml", "Add new", "a: 1\n", branch="main")
    with pytest.raises(GithubException, match="sha") as told:
        repo.create_file("new.yaml", "Again", "a: 2\n", branch="main")
    assert told.value.status == 422
    with pytest.raises(GithubException, match="does not match") as told:
        repo.update_file("new.yaml", "Stale", "a: 2\n", "0" * 40, branch="main")
    assert told.value.status == 409
    found = repo.get_contents("new.yaml")
    assert not isinstance(found, list)
    assert found.decoded_content == b"a: 1\n"
    repo.update_file("new.yaml", "Change", "a: 2\n", found.sha, branch="main")
    assert github.store.git("show", "main:new.yaml") == "a: 2\n"
    again = repo.get_contents("new.yaml", ref="main")
    assert not isinstance(again, list)
    repo.delete_file("new.yaml", "Remove", again.sha, branch="main")
    listing = repo.get_contents("")
    assert isinstance(listing, list)
    assert {(each.path, each.type) for each in listing} == {("cluster.yaml", "file"), ("pools", "dir")}


# ---- pull requests


def test_a_pull_request_goes_from_review_to_merge(github: GitHub) -> None:
    author, reviewer = (
        github.add_user(name, f"{name}@example.com") for name in ("example-author", "example-reviewer")
    )
    github.protect("main", reviews=1)
    head = a_branch(github, "change", {"pools/gpu.yaml": "x: 2\n", "added.yaml": "y\n"})
    repo = as_user(github, author)
    pull = repo.create_pull(title="More", head="change", base="main", body="why")
    assert (pull.mergeable, pull.head.sha, pull.merged) == (True, head, False)
    assert {(f.filename, f.status, f.changes) for f in pull.get_files()} == {
        ("pools/gpu.yaml", "modified", 2),
        ("added.yaml", "added", 1),
    }
    assert [commit.sha for commit in pull.get_commits()] == [head]
    with pytest.raises(GithubException, match="already exists"):
        repo.create_pull(title="Twice", head="change", base="main")
    with pytest.raises(GithubException, match="own pull request"):
        pull.create_review(event="APPROVE")
    with pytest.raises(GithubException, match="approving review") as told:
        pull.merge()
    assert told.value.status == 405
    as_user(github, reviewer).get_pull(1).create_review(event="APPROVE", body="good")
    with pytest.raises(GithubException, match="Head branch was modified") as told:
        pull.merge(sha="0" * 40)
    assert told.value.status == 409
    merged = pull.merge(sha=head)
    assert merged.merged
    assert github.store.git("rev-parse", "main^2").strip() == head
    assert repo.get_pull(1).is_merged()
    assert [review.commit_id for review in repo.get_pull(1).get_reviews()] == [head]
    assert [each.number for each in repo.get_pulls(state="closed")] == [1]


def test_a_push_after_the_review_voids_the_approval(github: GitHub) -> None:
    author, reviewer = (
        github.add_user(name, f"{name}@example.com") for name in ("example-author", "example-reviewer")
    )
    github.protect("main")
    a_branch(github, "change", {"a": "1"})
    pull = as_user(github, author).create_pull(title="More", head="change", base="main")
    as_user(github, reviewer).get_pull(1).create_review(event="APPROVE")
    github.seed({"a": "2"}, branch="change")
    with pytest.raises(GithubException, match="approving review"):
        pull.merge()


def test_a_conflicting_pull_request_is_not_mergeable(github: GitHub) -> None:
    a_branch(github, "change", {"cluster.yaml": "one\n"})
    github.seed({"cluster.yaml": "two\n"})
    pull = as_user(github).create_pull(title="Conflict", head="change", base="main")
    assert pull.mergeable is False
    with pytest.raises(GithubException, match="not mergeable"):
        pull.merge()


def test_comparison_tells_ahead_behind_and_files(github: GitHub) -> None:
    head = a_branch(github, "change", {"a": "1\n"})
    repo = as_user(github)
    assert repo.compare("main", "change").status == "ahead"
    github.seed({"b": "1\n"})
    found = repo.compare("main", "change")
    assert (found.status, found.ahead_by, found.behind_by) == ("diverged", 1, 1)
    assert [commit.sha for commit in found.commits] == [head]
    assert [file.filename for file in found.files] == ["a"]
    assert repo.compare("main", "main").status == "identical"


# ---- what programs say


def test_comments_are_paged_edited_and_deleted(github: GitHub) -> None:
    a_branch(github, "change", {"a": "1"})
    pull = as_user(github).create_pull(title="Talk", head="change", base="main")
    made = [pull.create_issue_comment(f"comment {n}") for n in range(35)]
    assert [c.body for c in pull.get_issue_comments()] == [f"comment {n}" for n in range(35)]
    made[0].edit("changed")
    made[1].delete()
    bodies = [c.body for c in pull.get_issue_comments()]
    assert (len(bodies), bodies[0], bodies[1]) == (34, "changed", "comment 2")


def test_the_combined_status_counts_the_newest_of_each_context(github: GitHub) -> None:
    tip = github.store.resolve("main") or ""
    commit = as_user(github).get_commit(tip)
    assert commit.get_combined_status().state == "pending"
    commit.create_status("failure", context="plan", description="2 errors")
    commit.create_status("success", context="lint")
    assert commit.get_combined_status().state == "failure"
    commit.create_status("success", context="plan")
    assert commit.get_combined_status().state == "success"
    assert len(list(commit.get_statuses())) == 3
    assert call(github, "POST", f"/statuses/{tip}", {"state": "odd"}).status_code == 422
    assert (
        call(github, "POST", f"/statuses/{tip}", {"state": "error", "description": "x" * 141}).status_code
        == 422
    )


def test_a_check_run_is_completed_by_its_conclusion(github: GitHub) -> None:
    repo, tip = as_user(github), github.store.resolve("main") or ""
    run = repo.create_check_run(name="plan", head_sha=tip, status="in_progress")
    with pytest.raises(GithubException):
        run.edit(status="completed")
    run = repo.create_check_run(name="plan-2", head_sha=tip)
    run.edit(conclusion="success", output={"title": "1 change", "summary": "fine"})
    assert (run.status, run.conclusion, run.output.title) == ("completed", "success", "1 change")
    assert {each.name for each in repo.get_commit(tip).get_check_runs()} == {"plan", "plan-2"}


# ---- git over HTTP


def test_git_clones_fetches_and_pushes_with_a_token(github: GitHub, tmp_path: Path) -> None:
    assert git("clone", github.clone_url, "refused", cwd=tmp_path, check=False).returncode == 128
    git("clone", "-q", with_token(github), "work", cwd=tmp_path)
    work = tmp_path / "work"
    assert (work / "pools" / "gpu.yaml").read_text() == "x: 1\n"
    (work / "new.yaml").write_text("1\n")
    git("add", "new.yaml", cwd=work)
    git("commit", "-qm", "New", cwd=work)
    git("push", "-q", "origin", "main", cwd=work)
    assert github.store.git("show", "main:new.yaml") == "1\n"
    github.seed({"cluster.yaml": "kind: Cluster # newer\n"})
    git("pull", "-q", cwd=work)
    assert "newer" in (work / "cluster.yaml").read_text()


def test_a_protected_branch_takes_pushes_from_the_app_only(github: GitHub, tmp_path: Path) -> None:
    person = github.add_user("example-person", "person@example.com")
    github.protect("main")
    git("clone", "-q", with_token(github, person), "work", cwd=tmp_path)
    work = tmp_path / "work"
    git("commit", "-q", "--allow-empty", "-m", "Direct", cwd=work)
    refused = git("push", "origin", "main", cwd=work, check=False)
    assert refused.returncode == 1
    assert "GH006" in refused.stderr
    git("push", "-q", "origin", "HEAD:topic", cwd=work)
    sha = github.store.resolve("topic")
    answer = call(github, "PATCH", "/git/refs/heads/main", {"sha": sha}, token=person)
    assert (answer.status_code, "rule violations" in answer.json()["message"]) == (422, True)
    git("push", "-q", with_token(github), "main", cwd=work)
    assert github.store.resolve("main") == sha


def test_a_force_push_over_http_is_possible_where_nothing_protects(github: GitHub, tmp_path: Path) -> None:
    git("clone", "-q", with_token(github), "work", cwd=tmp_path)
    git("commit", "-q", "--amend", "-m", "Rewritten", cwd=tmp_path / "work")
    assert git("push", "origin", "main", cwd=tmp_path / "work", check=False).returncode == 1
    git("push", "-qf", "origin", "main", cwd=tmp_path / "work")
    assert github.store.git("log", "-1", "--format=%s", "main").strip() == "Rewritten"


# ---- webhooks


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    got: list[tuple[dict[str, str], bytes]] = []

    class Receive(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((dict(self.headers), raw))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receive)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_way_to_move_a_ref_is_delivered_and_signed(
    github: GitHub, receiver: tuple[str, list[tuple[dict[str, str], bytes]]], tmp_path: Path
) -> None:
    url, got = receiver
    github.hooks.add(url, "s3cret")
    github.seed({"a.yaml": "1\n"}, message="By hand")
    repo = as_user(github)
    repo.create_file("b.yaml", "By contents", "1\n", branch="main")
    git("clone", "-q", with_token(github), "work", cwd=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "By push", cwd=tmp_path / "work")
    git("push", "-q", "origin", "HEAD:main", cwd=tmp_path / "work")
    repo.create_git_ref("refs/heads/topic", github.store.resolve("main") or "")
    repo.get_git_ref("heads/topic").delete()
    github.hooks.settle()
    for headers, raw in got:
        expected = "sha256=" + hmac.new(b"s3cret", raw, hashlib.sha256).hexdigest()
        assert headers["X-Hub-Signature-256"] == expected
    assert [headers["X-GitHub-Event"] for headers, _ in got] == ["ping", *["push"] * 5]
    assert len({headers["X-GitHub-Delivery"] for headers, _ in got}) == 6
    pushes = [json.loads(raw) for _, raw in got[1:]]
    assert [[c["message"] for c in push["commits"]] for push in pushes[:3]] == [
        ["By hand"], ["By contents"], ["By push"],
    ]  # fmt: skip
    assert pushes[0]["commits"][0]["added"] == ["a.yaml"]
    assert [(push["created"], push["deleted"]) for push in pushes[3:]] == [(True, False), (False, True)]
    assert pushes[2]["after"] == github.store.resolve("main")


def test_a_delivery_can_be_repeated_under_its_own_id(
    github: GitHub, receiver: tuple[str, list[tuple[dict[str, str], bytes]]]
) -> None:
    url, got = receiver
    github.hooks.add(url, "s3cret")
    github.hooks.settle()
    github.hooks.redeliver(github.hooks.deliveries[0])
    github.hooks.settle()
    assert got[0][0]["X-GitHub-Delivery"] == got[1][0]["X-GitHub-Delivery"]
    assert got[0][1] == got[1][1]


def test_a_receiver_that_is_down_is_noted_and_not_tried_again(github: GitHub) -> None:
    github.hooks.add("http://127.0.0.1:9/hook", "s3cret")
    github.hooks.settle()
    assert [delivery.status for delivery in github.hooks.deliveries] == [0]


# ---- life and faults


def test_it_comes_back_on_the_same_port_with_the_same_repository(github: GitHub) -> None:
    url, tip = github.api_url, github.store.resolve("main")
    github.stop()
    with pytest.raises(httpx.ConnectError):
        call(github, "GET", "")
    github.start()
    assert github.api_url == url
    assert call(github, "GET", "/git/ref/heads/main").json()["object"]["sha"] == tip


def test_pygithubs_own_retry_doubles_a_comment_after_a_502(github: GitHub) -> None:
    """The trap that the product avoids must exist here, or no test of ours would find it."""
    a_branch(github, "change", {"a": "1"})
    pull = as_user(github).create_pull(title="Trap", head="change", base="main")
    github.faults.add("done-then-502", "POST", "/comments")
    client = Github(base_url=github.api_url, auth=Auth.Token(github.token), seconds_between_writes=0)
    client.get_repo(github.repository).get_pull(pull.number).create_issue_comment("once")
    assert [c.body for c in pull.get_issue_comments()] == ["once", "once"]


def test_what_was_just_written_can_be_missing_for_a_while(github: GitHub) -> None:
    github.faults.add("not-there-yet", "GET", "/git/commits/", times=1)
    tip = github.store.resolve("main") or ""
    repo = as_user(github)
    parent = repo.get_git_commit(tip)
    made = repo.create_git_commit("New", parent.tree, [parent])
    with pytest.raises(UnknownObjectException):
        repo.get_git_commit(made.sha)
    assert repo.get_git_commit(made.sha).sha == made.sha


def test_a_lost_reply_was_processed_all_the_same(github: GitHub) -> None:
    github.faults.add("reply-lost", "PUT", "/contents/")
    with pytest.raises(httpx.RemoteProtocolError):
        call(github, "PUT", "/contents/x.txt", {"message": "x", "content": "eA=="})
    assert github.store.git("show", "main:x.txt") == "x"
    assert github.requests[-1].status == 0
