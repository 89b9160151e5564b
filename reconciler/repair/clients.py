"""The clients of the repair controller, in one value."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.providers.provider import Provider, ProviderKind
from reconciler.repair.step import ReportReader
from reconciler.source.recording import Recorder


@dataclass(frozen=True, slots=True)
class RepairClients:
    """Clients of every system that a repair uses. `connect` is called in each pass: a password may change."""

    reader: KubernetesReader
    writer: KubernetesWriter
    reports: ReportReader
    recorder: Recorder
    connect: Callable[[ProviderKind], Provider]
    namespace: str
