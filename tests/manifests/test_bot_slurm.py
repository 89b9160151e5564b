"""The components that let the bot ask Slurm: kustomize builds them, a real server takes them."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.settings import BotSettings
from checks.slurm.node import COMMAND, parse
from reconciler.settings import load
from tests.lab.kube.real import RealKube
from tests.lab.missing import require
from tests.lab.slurm.cluster import Slurm, problem

MANIFESTS = Path(__file__).parents[2] / "manifests"
OVERLAY = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [{manifests}/base]
components: [{manifests}/components/{component}]
images: [{{name: clusterwright-slurm, newName: images.example.com/clusterwright, newTag: 0.1.0-slurm}}]
"""
USER = 65532
"""Who the bot's pod is."""


SIDECARS = {
    "bot-slurm-munge": ("munged", "/run/munge", "clusterwright-munge"),
    "bot-slurm-sackd": ("sackd", "/run/slurm", "clusterwright-slurm-key"),
}
"""Component: its sidecar, where their common socket is, and the Secret that only the sidecar has."""


@pytest.fixture(params=SIDECARS)
def component(request: pytest.FixtureRequest) -> str:
    """Each component in turn."""
    return str(request.param)


@pytest.fixture
def overlay(component: str, tmp_path: Path) -> Path:
    """What a site with Slurm writes."""
    manifests = os.path.relpath(MANIFESTS, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(OVERLAY.format(manifests=manifests, component=component))
    return tmp_path


@pytest.fixture
def pod(real_server: RealKube, overlay: Path) -> dict[str, Any]:
    """The bot's pod as that overlay builds it."""
    built = yaml.safe_load_all(real_server.kubectl("kustomize", str(overlay)))
    (bot,) = (each for each in built if each["metadata"]["name"] == "clusterwright-bot" and spec_of(each))
    return spec_of(bot)


def spec_of(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return found


def test_the_server_takes_the_base_with_the_component_and_its_pod_stays_restricted(
    real_server: RealKube, component: str, overlay: Path, pod: dict[str, Any]
) -> None:
    taken = real_server.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o", "name", "-k", str(overlay)
    ).split()
    assert "deployment.apps/clusterwright-bot" in taken
    assert "networkpolicy.networking.k8s.io/bot-to-slurm" in taken
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for path, kind, metadata in (
        ("", "Namespace", {"name": component, "labels": labels}),
        (f"/{component}/serviceaccounts", "ServiceAccount", {"name": "clusterwright-bot"}),
    ):
        body = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
        assert real_server.request("POST", f"/api/v1/namespaces{path}", body)[0] == 201
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bot"}, "spec": pod}
    status, answer = real_server.request(
        "POST", f"/api/v1/namespaces/{component}/pods", body, params={"dryRun": "All"}
    )
    assert status == 201, answer


def test_the_bot_has_the_image_with_the_client_and_nobody_else_has(
    real_server: RealKube, component: str, overlay: Path, pod: dict[str, Any]
) -> None:
    images = {each["name"]: each["image"] for each in (*pod["containers"], *pod["initContainers"])}
    with_client = "images.example.com/clusterwright:0.1.0-slurm"
    assert images == {"bot": with_client, SIDECARS[component][0]: with_client}
    text = real_server.kubectl("kustomize", str(overlay))
    others = [spec for each in yaml.safe_load_all(text) if (spec := spec_of(each)) and spec != pod]
    assert {each["containers"][0]["image"] for each in others} == {"clusterwright:0.1.0"}


def test_the_component_turns_the_setting_on_and_mounts_what_it_names(
    pod: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (bot,) = pod["containers"]
    for each in bot["env"]:
        if each["name"].startswith("CLUSTERWRIGHT_BOT__"):
            monkeypatch.setenv(each["name"], each["value"])
    slurm = load(BotSettings, MANIFESTS / "base/clusterwright.toml").bot.slurm
    assert slurm is not None
    assert slurm.scontrol == "scontrol"
    assert slurm.conf_file is not None
    sources = {each["name"]: each for each in pod["volumes"]}
    place = places_in(bot)[str(slurm.conf_file.parent)]
    assert sources[place]["configMap"] == {"name": "clusterwright-slurm"}


def test_the_sidecar_shares_its_socket_with_the_bot_and_keeps_the_key(
    pod: dict[str, Any], component: str
) -> None:
    name, socket, key = SIDECARS[component]
    (bot,), (sidecar,) = pod["containers"], pod["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == (name, "Always")
    assert sidecar["startupProbe"]["exec"]["command"][2].startswith(f"{socket}/")
    assert places_in(sidecar)[socket] == places_in(bot)[socket]
    holding = {each["name"] for each in pod["volumes"] if key in str(each)}
    assert len(holding & set(places_in(sidecar).values())) == 1
    assert not holding & set(places_in(bot).values())


def places_in(container: dict[str, Any]) -> dict[str, str]:
    return {each["mountPath"]: each["name"] for each in container["volumeMounts"]}


@pytest.fixture
def places() -> Iterator[dict[str, Path]]:
    """Where the pod's volumes are, with the owners and modes that the kubelet gives them."""
    # Short, because unix sockets allow 107 bytes, and open to the pod's user.
    folder = Path(tempfile.mkdtemp(prefix="mg", dir="/tmp"))
    folder.chmod(0o755)
    found = {"/etc/munge": folder / "key", "/run/munge": folder / "run"}
    for each in found.values():
        each.mkdir()
        os.chown(each, 0, USER)
        each.chmod(0o2777)
    yield found
    shutil.rmtree(folder)


@pytest.mark.xdist_group("slurm")
@pytest.mark.parametrize("component", ["bot-slurm-munge"], indirect=True)
def test_the_bots_user_asks_a_real_controller_through_the_sidecars_munged(
    pod: dict[str, Any], places: dict[str, Path]
) -> None:
    require(problem())
    (munged,) = pod["initContainers"]
    command = [*munged["command"], *munged["args"]]
    for mounted, place in places.items():
        command = [each.replace(mounted, str(place)) for each in command]
    with Slurm(nodes=1) as slurm:
        key = places["/etc/munge"] / "munge.key"
        shutil.copy(slurm.root / "etc/munge.key", key)
        os.chown(key, 0, USER)
        key.chmod(
            next(each["secret"]["defaultMode"] for each in pod["volumes"] if each["name"] == "munge-key")
        )
        socket = places["/run/munge"] / "munge.socket.2"
        conf = (slurm.root / "etc/slurm.conf").read_text()
        places["/run/munge"].with_name("slurm.conf").write_text(
            conf.replace(f"{slurm.root}/run/munge.socket", str(socket))
        )
        environment = {**os.environ, "SLURM_CONF": str(places["/run/munge"].with_name("slurm.conf"))}
        sidecar = subprocess.Popen(
            command,
            user=USER,
            group=USER,
            extra_groups=(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            slurm.wait("munged's socket", socket.is_socket)
            done = subprocess.run(
                COMMAND, user=USER, group=USER, extra_groups=(), env=environment,
                capture_output=True, text=True, timeout=20, check=True,
            )  # fmt: skip
        finally:
            sidecar.send_signal(signal.SIGTERM)
            sidecar.wait(10)
        assert [each.name for each in parse(done.stdout)] == list(slurm.names)
