"""How the tests talk to the emulator: PyGithub, plain HTTP, git."""

import subprocess
from pathlib import Path
from typing import Any

import httpx
from github import (
    Auth,
    Github,
)
from github.Repository import Repository

from tests.lab.github.server import GitHub
from tests.lab.github.store import environment


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
