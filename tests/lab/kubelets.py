"""All kubelets of one Kubernetes, in one thread: a pass lists all pods once and steps each node."""

import logging
import threading
import time
from typing import TYPE_CHECKING, ClassVar

import httpx

from tests.lab.kubelet import Kubelet, Object
from tests.lab.pods import NAMESPACE

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

log = logging.getLogger(__name__)

PASS_SECONDS = 0.5
POLICY_SECONDS = 5.0
"""How often mounted ConfigMaps are brought up to date; a real kubelet takes about a minute."""
POLICY = f"/api/v1/namespaces/{NAMESPACE}/configmaps/clusterwright-checks"
UNREACHABLE = (OSError, LookupError, ValueError, httpx.HTTPError)
"""What `Kube` raises when the API server is away or refuses."""


class Kubelets:
    """The thread that steps all kubelets of one Kubernetes. It ends with the last of them."""

    _serving: ClassVar[dict["Kube", "Kubelets"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, kube: "Kube") -> None:
        self._kube = kube
        self._members: list[Kubelet] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        self._complaint = ""
        self._mount_at = 0.0

    @classmethod
    def join(cls, kubelet: Kubelet) -> None:
        """Step `kubelet` from now on."""
        with cls._lock:
            own = cls._serving.get(kubelet.kube)
            if own is None:
                own = cls._serving[kubelet.kube] = cls(kubelet.kube)
                own._thread.start()
            own._members.append(kubelet)

    @classmethod
    def leave(cls, kubelet: Kubelet) -> None:
        """Step it no more; the last to leave waits for the pass that may be going on."""
        with cls._lock:
            own = cls._serving.get(kubelet.kube)
            if own is None or kubelet not in own._members:
                return
            own._members.remove(kubelet)
            if own._members:
                return
            del cls._serving[kubelet.kube]
        own._stop.set()
        own._thread.join(timeout=15)

    def _run(self) -> None:
        while not self._stop.wait(PASS_SECONDS):
            try:
                self._pass()
                self._complain("")
            except UNREACHABLE as error:
                self._complain(str(error) or type(error).__name__)

    def _pass(self) -> None:
        with self._lock:
            members = [each for each in self._members if each.up]
        if not members:
            return
        status, listed = self._kube.request("GET", "/api/v1/pods", params={"resourceVersion": "0"})
        if status != 200:
            raise OSError(f"pods cannot be listed: {status} {listed.get('message')}")
        by_node: dict[str, list[Object]] = {}
        for pod in listed["items"]:
            by_node.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        if time.monotonic() >= self._mount_at:
            self._mount(members)
        for kubelet in members:
            if self._stop.is_set():
                return
            if kubelet.up:
                kubelet.step(by_node.get(kubelet.name, []), time.monotonic())

    def _mount(self, members: list[Kubelet]) -> None:
        status, found = self._kube.request("GET", POLICY)
        for kubelet in members:
            kubelet.mount(found.get("data", {}) if status == 200 else {})
        self._mount_at = time.monotonic() + POLICY_SECONDS

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            log.warning("kubelets lost the API server: %s", complaint) if complaint else log.info(
                "API server is back"
            )
            self._complaint = complaint
