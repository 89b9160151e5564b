"""What people type, with the real kubectl against the real API server."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from checks.finding import Action
from reconciler.incidents.progress import Phase
from reconciler.incidents.records import Evidence, RepairRecord
from reconciler.kube.connection import Connection
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.actions.registry import make_plan
from reconciler.repair.resource import RepairSpec, RepairStatus
from tests.lab import manifests
from tests.lab.kube.real import RealKube

MANIFESTS = Path(__file__).parents[2] / "manifests"
WHEN = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def kubectl(real_server: RealKube) -> Kubectl:
    """Run the real kubectl as administrator; returns what it printed."""
    return real_server.kubectl


@pytest.fixture
def repair(real_server: RealKube) -> str:
    """A repair under way, written by the reconciler's own account; its name."""
    connection = Connection(real_server.kubeconfig_for("clusterwright-reconciler"), 10.0)
    actor = KubernetesWriter(connection, "clusterwright")
    name = "gpu-01-0123456789ab"
    spec = example_spec().model_dump(mode="json", by_alias=True, exclude_none=True)
    actor.create_repair(name, spec)
    stored = connection.request("GET", f"/apis/clusterwright.dev/v1alpha1/repairs/{name}")
    status = RepairStatus(phase=Phase.RUNNING, step="drain", message="2 pods left", started_at=WHEN)
    actor.write_status(
        name,
        stored.body["metadata"]["resourceVersion"],
        status.model_dump(mode="json", by_alias=True, exclude_none=True),
    )
    return name


def example_spec() -> RepairSpec:
    plan = make_plan(REBOOT, "redfish", ())
    evidence = Evidence(
        cluster="example",
        incident="gpu-01-abc123",
        node="gpu-01",
        node_uid="5f0c",
        boot_id="b1",
        findings=("xid/154/-",),
        evidence_digest="e" * 16,
        plan_digest=plan.digest,
    )
    record = RepairRecord(
        action_id="0123456789ab",
        attempt=1,
        action=Action.REBOOT,
        evidence=evidence,
        plan=plan,
        approvals=("approval-1.yaml",),
        approved_at=WHEN,
        expires_at=WHEN + timedelta(hours=1),
    )
    return RepairSpec(
        record_path="incidents/2026/11/gpu-01-abc123/repair-1.yaml", record_commit="c0ffee", record=record
    )


def test_kustomize_builds_what_the_lab_applies_and_names_each_account_it_binds(kubectl: Kubectl) -> None:
    built = list(yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / "base"))))
    assert {identity(each) for each in manifests.read()} == {
        identity(each) for each in built if each["kind"] != "ConfigMap"
    }
    accounts = {each["metadata"]["name"] for each in built if each["kind"] == "ServiceAccount"}
    bound = [subject for each in built for subject in each.get("subjects", ())]
    assert {subject["name"] for subject in bound} < accounts


def identity(manifest: dict[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def test_the_base_is_applied_twice_without_a_change(kubectl: Kubectl) -> None:
    arguments = ("apply", "--server-side", "-o", "name", "-k", str(MANIFESTS / "base"))
    assert kubectl(*arguments) == kubectl(*arguments)
    versions = "jsonpath={.items[*].metadata.generation}"
    before = kubectl("get", "deployments,daemonsets", "-n", "clusterwright", "-o", versions)
    kubectl(*arguments)
    assert kubectl("get", "deployments,daemonsets", "-n", "clusterwright", "-o", versions) == before


def test_the_programs_restart_when_their_settings_change(kubectl: Kubectl) -> None:
    for overlay in ("base", "overlays/example"):
        built = list(yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / overlay))))
        (settings,) = (each["metadata"]["name"] for each in built if each["kind"] == "ConfigMap")
        assert re.fullmatch(r"clusterwright-[a-z0-9]{10}", settings)
        pods = [
            each["spec"]["template"]["spec"] for each in built if each["kind"] in ("Deployment", "DaemonSet")
        ]
        for pod in pods:
            assert {"name": settings} in [each.get("configMap") for each in pod["volumes"]]


def test_the_example_overlay_sets_the_image_and_keeps_agents_on_gpu_nodes(kubectl: Kubectl) -> None:
    built = list(yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / "overlays" / "example"))))
    pods = {
        each["kind"]: each["spec"]["template"]["spec"] for each in built if "template" in each.get("spec", {})
    }
    images = {pod["containers"][0]["image"] for pod in pods.values()}
    assert images == {"images.example.com/clusterwright:0.1.0"}
    assert pods["DaemonSet"]["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pods["DaemonSet"]["containers"][0]["securityContext"] == {
        "privileged": True,
        "readOnlyRootFilesystem": True,
        "runAsGroup": 0,
        "runAsUser": 0,
    }


def test_get_repairs_shows_where_each_stands(kubectl: Kubectl, repair: str) -> None:
    head, row = kubectl("get", "repairs", repair).splitlines()
    assert head.split() == ["NAME", "NODE", "ACTION", "PHASE", "STEP", "MESSAGE", "AGE"]
    assert re.split(r"\s{2,}", row)[:6] == [repair, "gpu-01", "reboot", "Running", "drain", "2 pods left"]
    assert "gpu-01-abc123" in kubectl("get", "repairs", "-o", "wide")


def test_describe_shows_the_record_and_the_journal(kubectl: Kubectl, repair: str) -> None:
    text = kubectl("describe", "repair", repair)
    assert re.search(r"Record Path:\s+incidents/2026/11/gpu-01-abc123/repair-1.yaml", text)
    assert re.search(r"Phase:\s+Running", text)


def test_explain_tells_people_what_the_fields_are(real_server: RealKube, kubectl: Kubectl) -> None:
    # The server publishes what it knows of a new kind a while after it serves it.
    until = time.monotonic() + 60
    while "apis/clusterwright.dev/v1alpha1" not in real_server.request("GET", "/openapi/v3")[1]["paths"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert "The approved repair record" in kubectl("explain", "repair.spec")


def test_a_repair_cannot_be_edited(real_server: RealKube, repair: str) -> None:
    patch = {"spec": {"recordCommit": "0000000"}}
    status, answer = real_server.request(
        "PATCH",
        f"/apis/clusterwright.dev/v1alpha1/repairs/{repair}",
        patch,
        content_type="application/merge-patch+json",
    )
    assert status == 422
    assert "record a new attempt instead" in answer["message"]
