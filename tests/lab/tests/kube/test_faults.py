"""Faults that a test switches on in the embedded server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.kube.embedded_kube import EmbeddedKube

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIGS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKube]:
    with EmbeddedKube(tmp_path_factory.mktemp("faulty")) as running:
        yield running


@pytest.fixture
def faulty(server: EmbeddedKube) -> Iterator[EmbeddedKube]:
    yield server
    server.faults.clear()


def test_an_error_may_hide_that_the_request_was_carried_out(faulty: EmbeddedKube, name: str) -> None:
    faulty.faults.fail(method="POST", path=CONFIGS, carried_out=True)
    code, answer = faulty.request("POST", CONFIGS, {"metadata": {"name": name}})
    assert (code, answer["reason"]) == (504, "Timeout")
    assert faulty.request("GET", f"{CONFIGS}/{name}")[0] == 200


def test_an_error_may_mean_that_nothing_was_done(faulty: EmbeddedKube, name: str) -> None:
    faulty.faults.fail(method="POST", path=CONFIGS)
    assert faulty.request("POST", CONFIGS, {"metadata": {"name": name}})[0] == 503
    assert faulty.request("GET", f"{CONFIGS}/{name}")[0] == 404


def test_a_fault_happens_as_often_as_was_asked_and_to_nothing_else(faulty: EmbeddedKube, name: str) -> None:
    faulty.faults.throttle(method="GET", path=f"{CONFIGS}/{name}", times=2, retry_after=7)
    assert faulty.request("GET", "/api/v1/nodes")[0] == 200
    with faulty.client() as client:
        replies = [client.get(f"{CONFIGS}/{name}") for _ in range(3)]
    assert [each.status_code for each in replies] == [429, 429, 404]
    assert [each.headers.get("Retry-After") for each in replies] == ["7", "7", None]


def test_a_server_may_not_know_about_audiences(faulty: EmbeddedKube) -> None:
    token = faulty.token("default", "default", ("elsewhere",))
    spec = {"token": token, "audiences": ["clusterwright-bot"]}
    honest = faulty.request("POST", REVIEWS, {"spec": spec})[1]["status"]
    faulty.faults.audience_unaware = True
    unaware = faulty.request("POST", REVIEWS, {"spec": spec})[1]["status"]
    assert not honest.get("authenticated")
    assert unaware["authenticated"] is True
    assert "audiences" not in unaware
    assert not faulty.request("POST", REVIEWS, {"spec": {**spec, "token": "x.y.z"}})[1]["status"].get(
        "authenticated"
    )
