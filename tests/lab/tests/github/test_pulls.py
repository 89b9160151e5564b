"""Pull requests on the GitHub emulator, and what is said on them."""

import pytest
from github import (
    GithubException,
)

from tests.lab.github.server import GitHub
from tests.lab.tests.github.client import a_branch, as_user, call


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
