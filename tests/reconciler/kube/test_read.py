import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from reconciler.kube.connection import Connection
from reconciler.kube.objects import Lease
from reconciler.kube.read import KubernetesReader
from reconciler.kube.results import UnavailableError
from reconciler.settings import SettingsError
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.harness import GPUS, OLD, NodeHarness

AUDIENCE = "clusterwright-bot"


@pytest.fixture(scope="session")
def kube(either: Kube) -> Kube:
    return either


@pytest.fixture
def reader(kube: Kube) -> KubernetesReader:
    return KubernetesReader.connect(kube.admin_kubeconfig, 5)


def test_a_node_is_read_with_what_we_use_of_it(harness: NodeHarness, reader: KubernetesReader) -> None:
    node = reader.node(harness.node)
    assert node is not None
    assert (node.uid, node.boot_id, node.ready, node.gpus) == (harness.node_uid, OLD, True, GPUS)
    assert harness.node in {each.name for each in reader.nodes()}


def test_what_is_not_there_is_none_and_no_failure(reader: KubernetesReader) -> None:
    assert reader.node("absent") is None
    assert reader.repair("absent") is None
    assert reader.lease("clusterwright", "absent") is None
    assert reader.node_heartbeat("absent") is None
    assert reader.pods("absent") == ()


def test_pods_are_those_bound_to_the_node(harness: NodeHarness, reader: KubernetesReader) -> None:
    harness.pod("a")
    harness.pod("b", owner="DaemonSet")
    harness.pod("c", owner="")
    pods = {each.name.removeprefix(f"{harness.node}-"): each for each in reader.pods(harness.node)}
    assert {name: (pod.controller, pod.evictable) for name, pod in pods.items()} == {
        "a": ("Job/o", True),
        "b": ("DaemonSet/o", False),
        "c": (None, True),
    }


def test_long_lists_are_read_page_by_page(harness: NodeHarness, reader: KubernetesReader) -> None:
    names = {f"{harness.node}-{index}" for index in range(501)}
    for name in names:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"nodeName": harness.node, "containers": [{"name": "c", "image": "example"}]},
        }
        harness.kube.request("POST", "/api/v1/namespaces/default/pods", body)
    assert {each.name for each in reader.pods(harness.node)} == names


def test_a_heartbeat_is_the_node_leases_renewal(harness: NodeHarness, reader: KubernetesReader) -> None:
    first = reader.node_heartbeat(harness.node)
    harness.beat()
    second = reader.node_heartbeat(harness.node)
    assert first is not None
    assert second is not None
    assert second > first
    lease = reader.lease("kube-node-lease", harness.node)
    assert isinstance(lease, Lease)
    assert lease.holder == harness.node


def test_repairs_are_none_while_the_resource_is_not_defined(tmp_path: Path) -> None:
    with start("embedded", tmp_path) as fresh:
        assert KubernetesReader.connect(fresh.admin_kubeconfig, 5).repairs() == ()


def test_a_token_tells_who_it_belongs_to_and_on_which_node(
    harness: NodeHarness, reader: KubernetesReader
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}}
    harness.kube.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    pod = (f"{harness.node}-agent", harness.pod("agent", account="agent"))
    token = harness.kube.token("default", "agent", (AUDIENCE,), pod)

    identity = reader.review_token(token, AUDIENCE)
    assert identity is not None
    assert (identity.username, identity.node) == ("system:serviceaccount:default:agent", harness.node)
    assert identity.audiences == (AUDIENCE,)

    unbound = reader.review_token(harness.kube.token("default", "agent", (AUDIENCE,)), AUDIENCE)
    assert unbound is not None
    assert unbound.node is None


def test_a_token_for_others_that_has_ended_or_is_none_belongs_to_nobody(
    harness: NodeHarness, reader: KubernetesReader
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}}
    harness.kube.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    tokens = [
        harness.kube.token("default", "agent", ("somebody-else",)),
        harness.kube.token("default", "agent", (AUDIENCE,), seconds=-5),
        "no-token",
        "",
    ]
    assert [reader.review_token(token, AUDIENCE) for token in tokens] == [None] * 4


def test_what_the_account_may_not_read_is_unknown(kube: Kube) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    kube.request("POST", "/api/v1/namespaces/clusterwright/serviceaccounts", account)
    reader = KubernetesReader.connect(kube.kubeconfig_for("nobody"), 5)
    with pytest.raises(UnavailableError, match="GET /api/v1/nodes/x: 403"):
        reader.node("x")


def test_a_token_file_is_read_again_for_each_request(kube: Kube, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("stale")
    reader = KubernetesReader.connect(kube.kubeconfig(tmp_path / "config", {"tokenFile": "token"}), 5)
    with pytest.raises(UnavailableError, match="401"):
        reader.node("x")
    token_file.write_text(kube.admin_token + "\n")
    assert reader.node("x") is None
    token_file.unlink()
    with pytest.raises(UnavailableError, match="token"):
        reader.node("x")


@contextmanager
def server(*answers: bytes | None) -> Iterator[str]:
    """Serve raw answers, one a connection; None keeps the caller waiting."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                held.append(connection)
                connection.recv(65536)
                if answer is not None:
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(5)
        for each in held:
            each.close()


def at(url: str, tmp_path: Path) -> KubernetesReader:
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }  # fmt: skip
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return KubernetesReader.connect(file, 0.3)


BROKEN = {
    "hangs": (None, "timed out"),
    "closes": (b"", "Connection aborted|ProtocolError|RemoteDisconnected"),
    "cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "IncompleteRead|Connection broken"),
    "no JSON": (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnope", "DecodeError"),
    "a list": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "Expected `object`"),
    "500": (b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}", "500 no message"),
    "429": (b"HTTP/1.1 429 No\r\nContent-Length: 2\r\n\r\n{}", "429 no message"),
    "redirect": (b"HTTP/1.1 302 No\r\nLocation: /x\r\nContent-Length: 2\r\n\r\n{}", "302"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_does_not_answer_well_is_unknown(tmp_path: Path, name: str) -> None:
    answer, said = BROKEN[name]
    with server(answer) as url, pytest.raises(UnavailableError, match=said):
        at(url, tmp_path).node("x")


REVIEWS: dict[str, tuple[str, bool]] = {
    "ours": ('"authenticated": true, "audiences": ["clusterwright-bot"]', True),
    "ours among others": ('"authenticated": true, "audiences": ["other", "clusterwright-bot"]', True),
    "others": ('"authenticated": true, "audiences": ["https://kubernetes.default.svc"]', False),
    "part of a name": ('"authenticated": true, "audiences": ["clusterwright-bot-2"]', False),
    "no audience": ('"authenticated": true, "audiences": []', False),
    "audiences left out": ('"authenticated": true', False),
    "not authenticated": ('"authenticated": false, "audiences": ["clusterwright-bot"]', False),
    "not said": ('"audiences": ["clusterwright-bot"]', False),
}


@pytest.mark.parametrize("name", REVIEWS)
def test_a_token_counts_only_if_the_server_names_our_audience(tmp_path: Path, name: str) -> None:
    """An API server without audiences of its own authenticates any token that it has issued."""
    said, accepted = REVIEWS[name]
    body = ('{"status": {' + said + ', "user": {"username": "agent"}}}').encode()
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with server(answer) as url:
        identity = at(url, tmp_path).review_token("token", AUDIENCE)
    assert (identity is not None) == accepted
    assert identity is None or identity.username == "agent"


def test_a_server_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    with server() as url:
        pass
    with pytest.raises(UnavailableError, match="GET /api/v1/nodes/x: "):
        at(url, tmp_path).node("x")


@pytest.mark.parametrize("text", ["", "[", "a: 1", "current-context: x\ncontexts: []"])
def test_a_kubeconfig_that_cannot_be_used_is_a_settings_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"kubernetes\.kubeconfig: "):
        Connection(file, 1)


def test_outside_a_pod_there_is_no_service_account() -> None:
    with pytest.raises(SettingsError, match=r"kubernetes\.kubeconfig: in-cluster: "):
        Connection(None, 1)
