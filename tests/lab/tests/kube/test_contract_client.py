"""The Python client that our programs use, against both back ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import urllib3
from kubernetes import client, config, watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.kube import Kube


@pytest.fixture
def api(kube: Kube) -> Iterator[client.ApiClient]:
    configuration = client.Configuration()
    config.load_kube_config(str(kube.admin_kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as made:
        yield made


def test_nodes_are_read_as_typed_objects(api: client.ApiClient, node: str) -> None:
    core = client.CoreV1Api(api)
    found = core.read_node(node)
    assert found.metadata.name == node
    assert found.spec.taints[0].key == "node.kubernetes.io/not-ready"
    assert found.status.node_info.boot_id == ""
    listed = core.list_node(field_selector=f"metadata.name={node}")
    assert [item.metadata.name for item in listed.items] == [node]


def test_a_missing_object_is_an_api_exception(api: client.ApiClient, name: str) -> None:
    with pytest.raises(client.ApiException) as caught:
        client.CoreV1Api(api).read_node(name)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


def test_a_node_is_cordoned_by_a_patch(api: client.ApiClient, node: str) -> None:
    core = client.CoreV1Api(api)
    assert core.patch_node(node, {"spec": {"unschedulable": True}}).spec.unschedulable is True


def test_pods_are_made_watched_and_evicted(api: client.ApiClient, namespace: str, node: str) -> None:
    core = client.CoreV1Api(api)
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "example"}]}
    since = core.list_pod_for_all_namespaces().metadata.resource_version
    core.create_namespaced_pod(namespace, {"metadata": {"name": "a"}, "spec": spec})
    stream = watch.Watch().stream(
        core.list_pod_for_all_namespaces,
        field_selector=f"spec.nodeName={node}",
        resource_version=since,
        timeout_seconds=10,
    )
    assert next(stream)["type"] == "ADDED"
    core.create_namespaced_pod_eviction("a", namespace, {"metadata": {"name": "a"}})
    marked = core.read_namespaced_pod("a", namespace)
    assert marked.metadata.deletion_timestamp is not None
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)
    assert "DELETED" in (event["type"] for event in stream)
    stream.close()


def test_leases_are_held(api: client.ApiClient, namespace: str) -> None:
    coordination = client.CoordinationV1Api(api)
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 60, "renewTime": "2026-11-30T00:00:00.000001Z"}
    coordination.create_namespaced_lease(namespace, {"metadata": {"name": "l"}, "spec": spec})
    found = coordination.read_namespaced_lease("l", namespace)
    assert found.spec.holder_identity == "one"
    found.spec.holder_identity = "two"
    assert coordination.replace_namespaced_lease("l", namespace, found).spec.holder_identity == "two"
    with pytest.raises(client.ApiException) as caught:
        coordination.replace_namespaced_lease("l", namespace, found)
    assert caught.value.status == 409


def test_a_lease_of_a_round_second_is_refused_as_this_client_drops_the_fraction(
    api: client.ApiClient, namespace: str
) -> None:
    body = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-11-30T00:00:00.000000Z"}}
    with pytest.raises(client.ApiException) as caught:
        client.CoordinationV1Api(api).create_namespaced_lease(namespace, body)
    assert caught.value.status == 400
    assert "2006-01-02T15:04:05.000000Z07:00" in str(caught.value.body)


def test_reviews_are_typed(api: client.ApiClient, kube: Kube, namespace: str) -> None:
    token = kube.token(namespace, "default", ("clusterwright-bot",))
    review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token, audiences=["clusterwright-bot"]))
    status = client.AuthenticationV1Api(api).create_token_review(review).status
    assert status.authenticated
    assert status.user.username == f"system:serviceaccount:{namespace}:default"


def test_raw_bytes_can_be_had(api: client.ApiClient, node: str) -> None:
    reply: Any = client.CoreV1Api(api).list_node(_preload_content=False)
    assert b'"NodeList"' in reply.read()


def test_an_apply_patch_goes_through(api: client.ApiClient, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    made = client.CoreV1Api(api).patch_namespaced_config_map(
        "a", namespace, body, field_manager="one", force=True, _content_type="application/apply-patch+yaml"
    )
    assert made.data == {"k": "v"}
    assert made.metadata.managed_fields[0].manager == "one"


def test_a_kubeconfig_of_an_account_has_its_rights(kube: Kube, namespace: str) -> None:
    configuration = client.Configuration()
    path = kube.kubeconfig_for("default", namespace)
    assert path.stat().st_mode & 0o077 == 0
    config.load_kube_config(str(path), client_configuration=configuration)
    with client.ApiClient(configuration) as made, pytest.raises(client.ApiException) as caught:
        client.CoreV1Api(made).list_node()
    assert caught.value.status == 403


def test_a_server_that_is_away_is_a_transport_error(api: client.ApiClient, kube: Kube) -> None:
    kube.pause()
    try:
        with pytest.raises(urllib3.exceptions.HTTPError):
            client.CoreV1Api(api).list_node(_request_timeout=2)
    finally:
        kube.resume()
    assert client.CoreV1Api(api).list_node(_request_timeout=5) is not None
