"""A GitHub that is away, late or loses its replies."""

import httpx
import pytest
from github import (
    Auth,
    Github,
    UnknownObjectException,
)

from tests.lab.github.server import GitHub
from tests.lab.tests.github.client import a_branch, as_user, call


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
