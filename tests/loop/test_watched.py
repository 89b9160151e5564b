"""What a person sees of a repair with the real kubectl, while it runs."""

import subprocess
from pathlib import Path

from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.step import names
from tests.lab.cluster import Cluster
from tests.lab.kube.binaries import program
from tests.lab.kube.fixture import require_real
from tests.loop.driving import approve, closed, open_thread

STEPS = names(REBOOT.plans[REBOOT.version])


def test_kubectl_watches_a_repair_from_its_first_step_to_its_end(tmp_path: Path) -> None:
    require_real()
    with Cluster(tmp_path, nodes=1, kubernetes="real") as cluster:
        message = open_thread(cluster, "gpu-01")
        seen = tmp_path / "watched.txt"
        argv = [
            program("kubectl"), f"--cache-dir={tmp_path / 'kubectl'}",
            "--kubeconfig", cluster.kube.admin_kubeconfig, "get", "repairs", "-w",
        ]  # fmt: skip
        with seen.open("w") as output, subprocess.Popen(argv, stdout=output, stderr=output) as watching:
            try:
                approve(cluster, message)
                closed(cluster, "gpu-01")
                cluster.wait("the end on the screen", lambda: ended(seen))
            finally:
                watching.terminate()
        screen = seen.read_text()
        assert [word for word in ("NODE", "ACTION", "PHASE", "STEP") if word not in screen] == []
        steps = [line.split()[4] for line in screen.splitlines() if line.split()[3:4] == ["Running"]]
        told = list(dict.fromkeys(steps))
        # A watch may miss what lasts for less than a moment, and never shows a step after a later one.
        assert told == sorted(told, key=STEPS.index)
        assert {"reset", "return"} <= set(told)
        assert STEPS.index(told[0]) <= STEPS.index("cordon")
        assert [line for line in screen.splitlines() if "gpu-01" in line and "reboot" in line]


def ended(seen: Path) -> bool:
    screen = seen.read_text()
    assert "rror" not in screen, screen
    return "Succeeded" in screen
