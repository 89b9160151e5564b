"""Findings of all Slurm nodes over time, from one answer of the controller after the other."""

from collections.abc import Iterable, Iterator, Mapping

from checks.debounce import Debouncer, Instant
from checks.finding import Finding
from checks.slurm.node import SlurmNode
from checks.slurm.state import CHECKS


class SlurmFindings:
    """What is wrong with each node according to Slurm. Does no I/O; time is an argument."""

    def __init__(self) -> None:
        self._debouncers: dict[str, Debouncer] = {}

    def update(
        self, rows: Iterable[SlurmNode], gpus: Mapping[str, int | None], at: Instant
    ) -> dict[str, tuple[Finding, ...]]:
        """Judge one answer of the controller; return the findings of each node in it.

        The keys of `gpus` are the Kubernetes nodes of the cluster, its values how many GPUs the agent sees
        there, None when unknown. Rows about other nodes are left out, and a node without a row is forgotten.
        While the controller does not answer, do not call: what was returned last stands.
        """
        known = dict(_by_node(rows, gpus))
        self._debouncers = {name: self._debouncers.get(name, Debouncer()) for name in known}
        for name, row in known.items():
            for check in CHECKS:
                self._debouncers[name].record(check, check.observe(row, gpus[name]), at)
        return {name: tuple(each.findings()) for name, each in self._debouncers.items()}


def _by_node(rows: Iterable[SlurmNode], nodes: Mapping[str, object]) -> Iterator[tuple[str, SlurmNode]]:
    """Yield each row with the Kubernetes node that it is about."""
    for row in rows:
        names = (row.kubernetes_node, row.name, row.hostname)
        name = next((each for each in names if each in nodes), None)
        if name is not None:
            yield name, row
