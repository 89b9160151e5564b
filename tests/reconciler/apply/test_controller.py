"""What the API server refuses is tried again and logged once; what was applied is applied again in time."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.apply.controller import ConfigController
from reconciler.apply.definitions import PACKAGED, definitions
from reconciler.kube.connection import Connection
from reconciler.kube.write import CRDS, KubernetesWriter
from reconciler.render.node_checks import NAME
from tests.lab.kube.kube import Kube
from tests.lab.kube.server import start
from tests.reconciler.cluster_harness import prepare
from tests.reconciler.harness import CONFIG, MERGE, START, config

APPLY_EVERY = timedelta(minutes=5)


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with start("embedded", tmp_path_factory.mktemp("kube")) as running:
        yield prepare(running)


class Applied:
    """A controller, its clock, and the resource versions that it leaves."""

    def __init__(self, kube: Kube, namespace: str, kubeconfig: Path | None = None) -> None:
        self.kube, self.namespace, self.now = kube, namespace, START
        writer = KubernetesWriter(Connection(kubeconfig or kube.admin_kubeconfig, 5), namespace)
        self.definitions = definitions(PACKAGED)
        self.controller = ConfigController(writer, namespace, self.definitions, APPLY_EVERY, self._clock)

    def _clock(self) -> datetime:
        return self.now

    def data(self) -> dict[str, Any] | None:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{NAME}"
        status, found = self.kube.request("GET", path)
        return found["data"] if status == 200 else None

    def crd(self) -> str:
        return f"{CRDS}/{self.definitions[0]['metadata']['name']}"


def account(kube: Kube, name: str) -> Path:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    assert kube.request("POST", "/api/v1/namespaces/clusterwright/serviceaccounts", body)[0] == 201
    return kube.kubeconfig_for(name)


def allow(kube: Kube, name: str, group: str, resource: str) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [group], "resources": [resource], "verbs": ["get", "create", "patch"]}
    role = {"metadata": {"name": f"{name}-{resource}"}, "rules": [rule]}
    assert kube.request("POST", f"{rbac}/clusterroles", {**role, "kind": "ClusterRole"})[0] == 201
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{name}-{resource}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"{name}-{resource}",
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "clusterwright"}],
    }  # fmt: skip
    assert kube.request("POST", f"{rbac}/clusterrolebindings", binding)[0] == 201


def test_what_is_refused_is_logged_once_tried_again_and_keeps_nothing_else(kube: Kube) -> None:
    applied = Applied(kube, "clusterwright", account(kube, "narrow"))
    allow(kube, "narrow", "", "configmaps")
    with capture_logs() as logs:
        for _ in range(3):
            applied.controller.reconcile(config())
        assert applied.data() == {"h100.json": '{"expected":{"gpus":8}}'}
        allow(kube, "narrow", "apiextensions.k8s.io", "customresourcedefinitions")
        applied.controller.reconcile(config())
    name = applied.definitions[0]["metadata"]["name"]
    assert [(each["event"], each["object"]) for each in logs] == [
        ("object not applied", name),
        ("object applied again", name),
    ]
    assert "403" in logs[0]["reason"]


def test_a_namespace_that_is_not_there_yet_is_tried_again(kube: Kube) -> None:
    applied = Applied(kube, "later")
    with capture_logs() as logs:
        for _ in range(2):
            applied.controller.reconcile(config())
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}
        assert kube.request("POST", "/api/v1/namespaces", body)[0] == 201
        applied.controller.reconcile(config())
    assert applied.data() is not None
    assert [each["event"] for each in logs] == ["object not applied", "object applied again"]


def test_objects_that_others_change_are_put_right_after_the_interval_and_not_before(kube: Kube) -> None:
    applied = Applied(kube, "clusterwright")
    applied.controller.reconcile(config())
    path = f"/api/v1/namespaces/clusterwright/configmaps/{NAME}"
    kube.request("PATCH", path, {"data": {"h100.json": "{}"}}, MERGE)
    assert kube.request("DELETE", applied.crd())[0] == 200

    applied.now += APPLY_EVERY - timedelta(seconds=1)
    applied.controller.reconcile(config())
    assert applied.data() == {"h100.json": "{}"}
    assert kube.request("GET", applied.crd())[0] == 404

    applied.now += timedelta(seconds=1)
    applied.controller.reconcile(config())
    assert applied.data() == {"h100.json": '{"expected":{"gpus":8}}'}
    assert kube.request("GET", applied.crd())[0] == 200


def test_a_configuration_that_changes_is_applied_at_once(kube: Kube) -> None:
    applied = Applied(kube, "clusterwright")
    applied.controller.reconcile(config())
    text = CONFIG.replace(b"name: h100", b"name: h200")
    applied.controller.reconcile(config(text))
    assert applied.data() == {"h200.json": '{"expected":{"gpus":8}}'}


def test_without_a_configuration_the_definitions_are_applied_alone(kube: Kube) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}}
    assert kube.request("POST", "/api/v1/namespaces", body)[0] == 201
    applied = Applied(kube, "empty")
    kube.request("DELETE", applied.crd())
    applied.controller.reconcile(None)
    assert kube.request("GET", applied.crd())[0] == 200
    assert applied.data() is None
