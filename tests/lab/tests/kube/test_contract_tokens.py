"""Service account tokens: asked for, reviewed, used, run out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

AUDIENCE = "clusterwright-bot"
BOUND = "authentication.kubernetes.io/"


@pytest.fixture
def account(kube: Kube, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    assert kube.request("POST", path, {"metadata": {"name": "agent"}})[0] == 201
    return "agent"


@pytest.fixture
def pod(kube: Kube, namespace: str, node: str, account: str) -> tuple[str, str]:
    spec = {
        "nodeName": node,
        "serviceAccountName": account,
        "containers": [{"name": "c", "image": "example"}],
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    code, made = kube.request("POST", path, {"metadata": {"name": "agent-x"}, "spec": spec})
    assert code == 201, made
    return "agent-x", made["metadata"]["uid"]


def review(kube: Kube, token: str, *audiences: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    code, answer = kube.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    assert code == 201, answer
    status: dict[str, Any] = answer["status"]
    return status


def test_a_token_names_its_account(kube: Kube, namespace: str, account: str) -> None:
    status = review(kube, kube.token(namespace, account, (AUDIENCE,)), AUDIENCE, "other")
    assert status["authenticated"] is True
    assert status["audiences"] == [AUDIENCE]
    user = status["user"]
    assert user["username"] == f"system:serviceaccount:{namespace}:agent"
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"}
    assert set(user["groups"]) == groups
    assert BOUND + "node-name" not in user["extra"]


def test_a_token_bound_to_a_pod_names_pod_and_node(
    kube: Kube, namespace: str, account: str, pod: tuple[str, str], node: str
) -> None:
    extra = review(kube, kube.token(namespace, account, (AUDIENCE,), pod), AUDIENCE)["user"]["extra"]
    uid = kube.request("GET", f"/api/v1/nodes/{node}")[1]["metadata"]["uid"]
    assert extra[BOUND + "node-name"] == [node]
    assert extra[BOUND + "node-uid"] == [uid]
    assert extra[BOUND + "pod-name"] == [pod[0]]
    assert extra[BOUND + "pod-uid"] == [pod[1]]
    assert extra[BOUND + "credential-id"][0].startswith("JTI=")


def test_a_token_for_another_audience_proves_nothing(kube: Kube, namespace: str, account: str) -> None:
    status = review(kube, kube.token(namespace, account, ("elsewhere",)), AUDIENCE)
    assert not status.get("authenticated")
    assert 'token audiences ["elsewhere"] is invalid for the target audiences' in status["error"]


def test_a_review_without_audiences_means_the_server_itself(kube: Kube, namespace: str, account: str) -> None:
    issuer = "https://kubernetes.default.svc"
    assert review(kube, kube.token(namespace, account))["audiences"] == [issuer]
    assert not review(kube, kube.token(namespace, account, (AUDIENCE,))).get("authenticated")


def test_only_the_audiences_that_were_asked_for_are_named(kube: Kube, namespace: str, account: str) -> None:
    token = kube.token(namespace, account, (AUDIENCE, "second", "third"))
    assert set(review(kube, token, "third", AUDIENCE, "fourth")["audiences"]) == {AUDIENCE, "third"}


def test_a_static_token_is_good_for_the_server_alone(kube: Kube) -> None:
    assert review(kube, kube.admin_token)["authenticated"] is True
    assert not review(kube, kube.admin_token, AUDIENCE).get("authenticated")


def test_an_expired_token_proves_nothing(kube: Kube, namespace: str, account: str) -> None:
    status = review(kube, kube.token(namespace, account, (AUDIENCE,), seconds=0), AUDIENCE)
    assert not status.get("authenticated")
    assert "service account token has expired" in status["error"]


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
def test_a_made_up_token_proves_nothing(kube: Kube, token: str) -> None:
    status = review(kube, token, AUDIENCE)
    assert not status.get("authenticated")
    assert status["error"]


def test_a_forged_token_proves_nothing(kube: Kube, namespace: str, account: str) -> None:
    head, payload, signature = kube.token(namespace, account, (AUDIENCE,)).split(".")
    turned = signature[:-10] + signature[-10:][::-1]
    assert not review(kube, f"{head}.{payload}.{turned}", AUDIENCE).get("authenticated")


def test_a_token_ends_with_its_pod(
    kube: Kube, namespace: str, account: str, pod: tuple[str, str], eventually
) -> None:
    token = kube.token(namespace, account, (AUDIENCE,), pod)
    kube.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod[0]}", {"gracePeriodSeconds": 0})
    eventually(lambda: not review(kube, token, AUDIENCE).get("authenticated"))
    assert review(kube, token, AUDIENCE)["error"]


def test_a_token_ends_with_its_account(kube: Kube, namespace: str, account: str, eventually) -> None:
    token = kube.token(namespace, account, (AUDIENCE,))
    kube.request("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}")
    eventually(lambda: not review(kube, token, AUDIENCE).get("authenticated"))


def test_the_request_says_how_long_the_token_lasts(kube: Kube, namespace: str, account: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    code, answer = kube.request("POST", path, {"spec": {"audiences": [AUDIENCE], "expirationSeconds": 1200}})
    assert code == 201
    assert answer["kind"] == "TokenRequest"
    assert (answer["spec"]["audiences"], answer["spec"]["expirationSeconds"]) == ([AUDIENCE], 1200)
    assert answer["status"]["expirationTimestamp"].endswith("Z")


def test_a_token_lasts_ten_minutes_at_least(kube: Kube, namespace: str, account: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    code, answer = kube.request("POST", path, {"spec": {"expirationSeconds": 60}})
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "spec.expirationSeconds")


def test_a_token_is_bound_to_a_pod_of_its_account_only(
    kube: Kube, namespace: str, account: str, pod: tuple[str, str]
) -> None:
    def refused(account: str, name: str, uid: str) -> int:
        bound = {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return kube.request("POST", path, {"spec": {"boundObjectRef": bound}})[0]

    assert refused(account, "nobody", pod[1]) == 404
    assert refused(account, pod[0], "00000000-0000-0000-0000-000000000000") == 409
    assert refused("default", *pod) == 400
    assert refused("nobody", *pod) == 404


def test_a_token_speaks_to_the_server_itself(kube: Kube, namespace: str, account: str) -> None:
    with kube.client(kube.token(namespace, account)) as client:
        assert client.get("/apis").status_code == 200
        reply = client.get("/api/v1/nodes")
    assert reply.status_code == 403
    assert f'User "system:serviceaccount:{namespace}:agent" cannot list' in reply.json()["message"]


@pytest.mark.parametrize("kind", ["audience", "expired", "nonsense"])
def test_a_bad_token_is_unauthorized(kube: Kube, namespace: str, account: str, kind: str) -> None:
    made = {
        "audience": lambda: kube.token(namespace, account, (AUDIENCE,)),
        "expired": lambda: kube.token(namespace, account, seconds=0),
        "nonsense": lambda: "nonsense",
    }[kind]()
    with kube.client(made) as client:
        reply = client.get("/api/v1/nodes")
    assert (reply.status_code, reply.json()["reason"]) == (401, "Unauthorized")


def test_who_says_nothing_is_anonymous(kube: Kube) -> None:
    with kube.client() as client:
        del client.headers["Authorization"]
        assert client.get("/readyz").status_code == 200
        reply = client.get("/api/v1/nodes")
    assert reply.status_code == 403
    assert 'User "system:anonymous" cannot list resource "nodes"' in reply.json()["message"]
