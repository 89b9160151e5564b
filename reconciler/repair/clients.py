"""The outside systems of the repair controller, in one value."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.kube.read import KubernetesReader
from reconciler.kube.write import KubernetesWriter
from reconciler.repair.providers.provider import Provider, ProviderKind
from reconciler.repair.step import ReportReader
from reconciler.source.recording import Recorder


@dataclass(frozen=True, slots=True)
class RepairClients:
    """Every system that a repair touches. `connect` is asked in each pass, because a password may change."""

    reader: KubernetesReader
    writer: KubernetesWriter
    reports: ReportReader
    recorder: Recorder
    connect: Callable[[ProviderKind], Provider]
    namespace: str
