"""ClusterState: what the loops read from Kubernetes."""

from typing import Protocol

from reconciler.kube.objects import Budget, Node, Object, Pod


class ClusterState(Protocol):
    """Kubernetes, as far as incidents need it. Every method blocks, and raises UnavailableError."""

    def nodes(self) -> tuple[Node, ...]: ...  # noqa: D102 - see reconciler.kube.read
    def node(self, name: str) -> Node | None: ...  # noqa: D102
    def pods(self, node: str) -> tuple[Pod, ...]: ...  # noqa: D102
    def budgets(self) -> tuple[Budget, ...]: ...  # noqa: D102
    def repairs(self) -> tuple[Object, ...]: ...  # noqa: D102
