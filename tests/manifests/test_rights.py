"""What each program may do and what it may not, by the API server's own word.

Invariant: of every verb on every resource that matters, in each namespace, exactly the listed are allowed.
"""

import copy
import time
from collections.abc import Iterator

import pytest

from checks.report import AUDIENCE
from reconciler.kube.connection import Connection
from reconciler.kube.results import UnavailableError
from reconciler.kube.write import CRDS, KubernetesWriter
from tests.lab import manifests
from tests.lab.kube.kube import Kube
from tests.lab.kube.real import RealKube

NAMESPACES = ("clusterwright", "kube-node-lease", "default")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")

CLUSTER_WIDE = (
    "nodes",
    "nodes/status",
    "nodes/proxy",
    "namespaces",
    "persistentvolumes",
    "repairs.clusterwright.dev",
    "repairs.clusterwright.dev/status",
    "customresourcedefinitions.apiextensions.k8s.io=repairs.clusterwright.dev",
    "customresourcedefinitions.apiextensions.k8s.io=other.example.com",
    "tokenreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "certificatesigningrequests.certificates.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)
NAMESPACED = (
    "pods",
    "pods/eviction",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/log",
    "pods/status",
    "pods/ephemeralcontainers",
    "secrets",
    "configmaps",
    "configmaps=clusterwright-checks",
    "serviceaccounts",
    "serviceaccounts/token",
    "events",
    "services",
    "deployments.apps",
    "daemonsets.apps",
    "jobs.batch",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "leases.coordination.k8s.io",
    "poddisruptionbudgets.policy",
    "networkpolicies.networking.k8s.io",
)
BEYOND_ACCESS = (
    ("impersonate", "users"),
    ("impersonate", "groups"),
    ("impersonate", "serviceaccounts"),
    ("escalate", "clusterroles.rbac.authorization.k8s.io"),
    ("bind", "clusterroles.rbac.authorization.k8s.io"),
)
"""Verbs with which an account can make itself more than it is."""

Right = tuple[str, str, str]
"""Verb, `resource[.group][/subresource][=name]`, namespace (empty: none)."""


def rights(verbs: str, resource: str, *namespaces: str) -> set[Right]:
    return {(verb, resource, namespace) for verb in verbs.split() for namespace in namespaces or ("",)}


ALLOWED: dict[str, set[Right]] = {
    "agent": set(),
    "bot": {
        *rights("create", "tokenreviews.authentication.k8s.io"),
        *rights("get list", "nodes"),
        *rights("list", "pods", *NAMESPACES),
        *rights("list", "poddisruptionbudgets.policy", *NAMESPACES),
        *rights("list", "repairs.clusterwright.dev"),
    },
    "reconciler": {
        *rights("get list patch", "nodes"),
        *rights("list", "pods", *NAMESPACES),
        *rights("create", "pods/eviction", *NAMESPACES),
        *rights("list", "poddisruptionbudgets.policy", *NAMESPACES),
        *rights("get list create", "repairs.clusterwright.dev"),
        *rights("patch", "repairs.clusterwright.dev/status"),
        *rights("create patch", "customresourcedefinitions.apiextensions.k8s.io=repairs.clusterwright.dev"),
        *rights("get create patch", "leases.coordination.k8s.io", "clusterwright"),
        *rights("create patch", "configmaps=clusterwright-checks", "clusterwright"),
        *rights("get", "leases.coordination.k8s.io", "kube-node-lease"),
    },
}


def every_right() -> Iterator[Right]:
    for verb in VERBS:
        yield from ((verb, resource, "") for resource in CLUSTER_WIDE)
        yield from ((verb, resource, place) for resource in NAMESPACED for place in NAMESPACES)
    yield from ((verb, resource, "") for verb, resource in BEYOND_ACCESS)


def may(server: Kube, program: str, right: Right) -> bool:
    verb, what, namespace = right
    what, _, name = what.partition("=")
    what, _, subresource = what.partition("/")
    resource, _, group = what.partition(".")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "name": name,
    }
    account = "system:serviceaccounts"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:clusterwright:clusterwright-{program}",
            "groups": [account, f"{account}:clusterwright", "system:authenticated"],
            "resourceAttributes": {**attributes, "namespace": namespace},
        },
    }
    status, answer = server.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert status == 201, answer
    return bool(answer["status"].get("allowed"))


@pytest.mark.parametrize("program", list(ALLOWED))
def test_a_program_may_do_exactly_what_is_listed(real_server: RealKube, program: str) -> None:
    allowed = {right for right in every_right() if may(real_server, program, right)}
    assert allowed == ALLOWED[program]


@pytest.mark.parametrize("program", list(ALLOWED))
def test_the_embedded_server_grants_what_is_listed(embedded_server: Kube, program: str) -> None:
    missing = {right for right in ALLOWED[program] if not may(embedded_server, program, right)}
    assert missing == set()


def test_the_table_lists_only_rights_that_are_tried() -> None:
    assert set().union(*ALLOWED.values()) <= set(every_right())


def test_the_reconciler_defines_its_own_resource_on_a_cluster_without_it_and_no_other(server: Kube) -> None:
    definition = manifests.find("CustomResourceDefinition", "repairs.clusterwright.dev")
    server.request("DELETE", f"{CRDS}/repairs.clusterwright.dev")
    deadline = time.monotonic() + 60
    while (
        server.request("GET", f"{CRDS}/repairs.clusterwright.dev")[0] != 404 and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    actor = KubernetesWriter(
        Connection(server.kubeconfig_for("clusterwright-reconciler"), 10.0), "clusterwright"
    )
    actor.apply_crd(definition)
    assert server.request("GET", f"{CRDS}/repairs.clusterwright.dev")[0] == 200

    other = copy.deepcopy(definition)
    other["metadata"]["name"] = "mends.clusterwright.dev"
    other["spec"]["names"] = {"kind": "Mend", "listKind": "MendList", "plural": "mends", "singular": "mend"}
    with pytest.raises(UnavailableError, match="forbidden"):
        actor.apply_crd(other)
    assert server.request("GET", f"{CRDS}/mends.clusterwright.dev")[0] == 404


def test_the_agents_token_opens_nothing_at_the_api_server(server: Kube) -> None:
    token = server.token("clusterwright", "clusterwright-agent", audiences=(AUDIENCE,))
    with server.client(token) as client:
        assert client.get("/api/v1/nodes").status_code == 401
