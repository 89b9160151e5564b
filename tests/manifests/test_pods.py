"""How the pods of the three programs are confined: by their manifests, and by a real server's admission."""

import copy
from typing import Any

import msgspec
import pytest

from checks.agent.settings import AgentSettings
from reconciler.render.node_checks import NAME
from tests.lab import manifests
from tests.lab.kube.kube import Kube

PROGRAMS = {
    "clusterwright-agent": "DaemonSet",
    "clusterwright-bot": "Deployment",
    "clusterwright-reconciler": "Deployment",
}


def pod_spec(name: str) -> dict[str, Any]:
    return copy.deepcopy(manifests.find(PROGRAMS[name], name)["spec"]["template"]["spec"])


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_has_no_more_than_it_needs(name: str) -> None:
    spec = pod_spec(name)
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert not security.get("privileged")
    assert security["capabilities"]["drop"] == ["ALL"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(spec.get(each) for each in ("hostNetwork", "hostPID", "hostIPC"))
    assert container["resources"]["limits"].keys() == {"memory"}, (
        "a CPU limit would throttle it when it matters"
    )
    assert spec["serviceAccountName"] == name


def test_the_agent_gets_one_capability_and_writes_one_directory() -> None:
    spec = pod_spec("clusterwright-agent")
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"]["add"] == ["SYSLOG"]
    assert container["resources"]["limits"]["memory"] == "64Mi"
    writable = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/var/lib/clusterwright"]
    host = [each["hostPath"] for each in spec["volumes"] if "hostPath" in each]
    assert host == [
        {"path": "/", "type": "Directory"},
        {"path": "/proc", "type": "Directory"},
        {"path": "/sys", "type": "Directory"},
        {"path": "/dev/kmsg", "type": "CharDevice"},
        {"path": "/var/lib/clusterwright", "type": "DirectoryOrCreate"},
    ]


def test_the_agent_looks_at_the_node_below_its_root_and_reads_the_policy_that_the_reconciler_writes() -> None:
    spec = pod_spec("clusterwright-agent")
    (container,) = spec["containers"]
    places = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    (root,) = (each["value"] for each in container["env"] if each["name"] == "CLUSTERWRIGHT_AGENT__ROOT")
    settings = {each.name: each.default for each in msgspec.structs.fields(AgentSettings)}
    assert places["root"] == root
    assert places["kmsg"] == f"{root}/{settings['kernel_log']}"
    assert places["checks"] == str(settings["policy_dir"])
    (checks,) = (each["configMap"] for each in spec["volumes"] if each["name"] == "checks")
    assert checks == {"name": NAME, "optional": True}


def test_the_agent_runs_on_every_node_with_a_token_for_the_bot_alone() -> None:
    spec = pod_spec("clusterwright-agent")
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert spec["automountServiceAccountToken"] is False
    (source,) = next(each["projected"]["sources"] for each in spec["volumes"] if each["name"] == "token")
    assert source["serviceAccountToken"]["audience"] == "clusterwright-bot"


@pytest.mark.parametrize("name", ["clusterwright-bot", "clusterwright-reconciler"])
def test_there_is_never_a_second_writer(name: str) -> None:
    spec = manifests.find("Deployment", name)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("name", "admitted"),
    [("clusterwright-bot", True), ("clusterwright-reconciler", True), ("clusterwright-agent", False)],
)
def test_only_the_agent_needs_more_than_the_restricted_level(
    real_server: Kube, name: str, *, admitted: bool
) -> None:
    namespace = f"restricted-{name}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    create(real_server, "/api/v1/namespaces", "Namespace", {"name": namespace, "labels": labels})
    create(real_server, f"/api/v1/namespaces/{namespace}/serviceaccounts", "ServiceAccount", {"name": name})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(name)}
    status, answer = real_server.request(
        "POST", f"/api/v1/namespaces/{namespace}/pods", pod, params={"dryRun": "All"}
    )
    assert (status == 201) is admitted, answer
    assert admitted or "violates PodSecurity" in answer["message"]


def create(server: Kube, path: str, kind: str, metadata: dict[str, Any]) -> None:
    status, answer = server.request("POST", path, {"apiVersion": "v1", "kind": kind, "metadata": metadata})
    assert status == 201, answer
