"""One Kubernetes API for tests and the demo, with two back ends behind one face.

from tests.lab.kube.server import start

with start("embedded", workdir) as kube:
    code, node = kube.request("GET", "/api/v1/nodes/gpu-01")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tests.lab.kube.embedded_kube import EmbeddedKube
from tests.lab.kube.real import RealKube

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.kube.kube import Kube

Backend = Literal["real", "embedded"]


def start(backend: Backend, workdir: Path) -> Kube:
    """A running API server; files such as kubeconfigs go to workdir.

    Raises:
        tests.lab.kube.binaries.MissingBinariesError: the real back end is not built; the text names the
            command that builds it.
    """
    workdir.mkdir(parents=True, exist_ok=True)
    return EmbeddedKube(workdir) if backend == "embedded" else RealKube(workdir)
