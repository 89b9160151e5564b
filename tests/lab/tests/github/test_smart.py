"""Clone, fetch and push over HTTP."""

from pathlib import Path

from tests.lab.github.server import GitHub
from tests.lab.tests.github.client import call, git, with_token


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
