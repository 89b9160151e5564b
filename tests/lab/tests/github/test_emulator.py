"""The GitHub emulator's git data: refs, trees, commits and contents, asked with the real client library."""

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

from tests.lab.github.server import GitHub
from tests.lab.tests.github.client import as_user, call


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
