"""A node of the lab: simulated kubelet, a root directory of its own, and one real agent process.

A reboot runs as on metal: power goes, the agent dies with it and the kubelet falls silent; after
`boot_seconds` there is a new boot id and a new kernel log, the kubelet tells Kubernetes of this boot, and
then the agent starts. A BMC calls `power`, a test calls `reboot`.
"""

import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.lab.kube.kube import Kube
from tests.lab.kubelet import Hardware, Kubelet
from tests.lab.kubelets import Kubelets
from tests.lab.noderoot import NodeRoot
from tests.lab.program import Program

NODES_PER_RACK = 4
"""Racks of four 8-GPU servers: what some 40 kW of power and cooling carry."""

READY_SECONDS = 60.0


class Node:
    """One node. `index` (from 0) places it in a rack; `agent_settings` are further keys of the table `agent`.

    Misbehaviour is set on the node before a reboot: `fault_survives_reboot` writes the last Xid again after
    the boot, `never_returns` leaves the node dark, `gpus_after_reboot` is how many GPUs come back.
    """

    def __init__(
        self, name: str, kube: Kube, workdir: Path, bot_url: str, index: int, *, gpus: int = 8,
        pool: str = "h100", boot_seconds: float = 3.0, agent_settings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.gpus = gpus
        self.boot_seconds = boot_seconds
        self.fault_survives_reboot = False
        self.never_returns = False
        self.gpus_after_reboot: int | None = None
        self.boot_id = ""
        self.directory = workdir / "nodes" / name
        self.root = NodeRoot(self.directory / "root", name)
        self.token_file = self.directory / "token"
        labels = {
            "clusterwright.dev/pool": pool,
            "clusterwright.dev/rack": f"rack-{index // NODES_PER_RACK + 1}",
        }
        self.kubelet = Kubelet(kube, name, labels, self.token_file)
        self.agent = Program(
            "checks", self._environment(bot_url, agent_settings or {}), self.directory / "agent.log"
        )
        self._last_fault = ""
        self._lock = threading.Lock()
        self._powered = False
        self._power_lost = threading.Event()
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        self.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def ready(self) -> bool:
        """Whether this boot is complete: known to Kubernetes, agent started."""
        return self._ready.is_set()

    def start(self) -> None:
        """Switch on, already booted; returns before Kubernetes knows (`wait_ready`)."""
        Kubelets.join(self.kubelet)
        self._power_on(boot_seconds=0.0)

    def stop(self) -> None:
        """End everything of this node; its object stays in Kubernetes."""
        self._power_off()
        Kubelets.leave(self.kubelet)

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Return once `ready`; raises with the end of the agent's log when it is not."""
        if not self._ready.wait(timeout):
            raise TimeoutError(
                f"{self.name} is not up after {timeout:.0f} s; its agent says:\n{self.agent_says()}"
            )

    def agent_says(self) -> str:
        """Return the end of the agent's log."""
        return self.agent.log.read_text()[-2000:] if self.agent.log.exists() else ""

    def write_kernel(self, text: str, priority: int = 4) -> None:
        """Have the kernel log `text`; `priority` is syslog's (3 error, 4 warning, 6 info)."""
        if "NVRM: Xid" in text:
            self._last_fault = text
        self.root.write_kernel(text, priority)

    def start_agent(self) -> None:
        self.agent.start()

    def kill_agent(self) -> None:
        """kill -9."""
        self.agent.kill()

    def stop_kubelet(self) -> None:
        """Let the kubelet die while the machine runs: no Lease is renewed, no end of a pod confirmed."""
        self.kubelet.stop()

    def start_kubelet(self) -> None:
        self.kubelet.start(Hardware(self.gpus, self.boot_id))

    def reboot(self) -> None:
        """Cut the power and give it back at once; returns before the boot is over (`wait_ready`)."""
        self.power("Off")
        self.power("On")

    def power(self, state: str) -> None:
        """Obey the BMC: `Off` or `On`. Power that goes while booting ends that boot."""
        if state == "Off":
            self._power_off()
        else:
            self._power_on(self.boot_seconds)

    def _power_off(self) -> None:
        with self._lock:
            self._powered = False
            self._power_lost.set()
            self._ready.clear()
            self.kubelet.stop()
            self.agent.kill()

    def _power_on(self, boot_seconds: float) -> None:
        with self._lock:
            if self._powered:
                return
            self._powered = True
            self._power_lost = lost = threading.Event()
        boot = threading.Thread(
            target=self._boot, args=(lost, boot_seconds), name=f"boot-{self.name}", daemon=True
        )
        boot.start()

    def _boot(self, lost: threading.Event, boot_seconds: float) -> None:
        again = bool(self.boot_id)
        if lost.wait(boot_seconds) or (again and self.never_returns):
            return
        with self._lock:
            if lost.is_set():
                return
            if again and self.gpus_after_reboot is not None:
                self.gpus = self.gpus_after_reboot
            self.boot_id = str(uuid.uuid4())
            self.root.boot(self.boot_id, self.gpus)
            if again and self.fault_survives_reboot and self._last_fault:
                self.root.write_kernel(self._last_fault, 4)
            self.kubelet.start(Hardware(self.gpus, self.boot_id))
        while not self.kubelet.ready:
            if lost.wait(0.05):
                return
        with self._lock:
            if not lost.is_set():
                self.agent.start()
                self._ready.set()

    def _environment(self, bot_url: str, settings: Mapping[str, str]) -> dict[str, str]:
        own = {
            "node": self.name,
            "bot_url": bot_url,
            "token_file": str(self.token_file),
            "root": str(self.root.path),
            "state_dir": str(self.directory / "state"),
            "policy_dir": str(self.kubelet.policy_dir),
        }
        (self.directory / "state").mkdir(parents=True, exist_ok=True)
        return {f"CLUSTERWRIGHT_AGENT__{key.upper()}": value for key, value in {**own, **settings}.items()}
