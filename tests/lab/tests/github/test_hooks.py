"""Webhooks: delivered, signed, repeated."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.lab.github.server import GitHub
from tests.lab.tests.github.client import as_user, git, with_token


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
