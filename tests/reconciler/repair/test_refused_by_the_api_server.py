"""What the API server refuses for a day ends at the step's limit: people are told, and nothing is held unseen."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reconciler.incidents.progress import Phase
from reconciler.kube.connection import ApiResponse, Connection, Object
from reconciler.kube.results import UnavailableError
from tests.reconciler.harness import CLEAN, NodeHarness

Refuses = Callable[[str, str], bool]


class RefusingConnection(Connection):
    """A connection whose API server forbids some requests."""

    def __init__(self, wire: Connection, refuses: Refuses) -> None:
        self._wire, self.refuses = wire, refuses

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        params: Any = None,
        content_type: str = "application/json",
    ) -> ApiResponse:
        if self.refuses(method, path):
            return ApiResponse(403, {"message": "forbidden by policy", "code": 403})
        return self._wire.request(method, path, body, params, content_type)


def refuse(harness: NodeHarness, refuses: Refuses) -> RefusingConnection:
    connection = RefusingConnection(harness.wire, refuses)
    harness.wire = connection
    return connection


def drive(harness: NodeHarness, span: timedelta) -> None:
    """Run passes for a time, as the controller does: a pass that fails is tried again."""
    until = harness.now + span
    while harness.now < until:
        try:
            after = harness.one_pass().after
        except UnavailableError:
            after = 5.0
        if after is None:
            return
        harness.pass_time(max(after, 5.0))


REFUSED: dict[str, tuple[Refuses, Phase, str]] = {
    "budgets": (lambda _, path: "poddisruptionbudgets" in path, Phase.LAPSED, "approval lapsed"),
    "pods": (lambda method, path: method == "GET" and path.endswith("/pods"), Phase.LAPSED, "approval lapsed"),
    "evictions": (lambda _, path: path.endswith("/eviction"), Phase.HELD, "forbidden by policy"),
    "the cordon": (lambda method, path: method == "PATCH" and "/nodes/" in path, Phase.LAPSED, "cordoning took"),
    "the heartbeat": (
        lambda method, path: method == "GET" and "kube-node-lease" in path, Phase.HELD, "forbidden by policy",
    ),
    "the renewal of our lease": (
        lambda method, path: method == "PATCH" and "leases/clusterwright" in path,
        Phase.LAPSED,
        "forbidden by policy",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_repair_whose_requests_are_refused_ends_and_says_so(harness: NodeHarness, name: str) -> None:
    refuses, phase, reason = REFUSED[name]
    harness.pod("train")
    harness.order("train")
    connection = refuse(harness, refuses)

    drive(harness, timedelta(hours=6))
    connection.refuses = lambda _method, _path: False
    drive(harness, timedelta(minutes=30))

    repair = harness.repair()
    assert (repair.status.phase, reason in repair.status.message) == (phase, True), repair.status.message
    assert repair.status.released
    assert harness.outcome()["phase"] == phase.value
    if phase is Phase.LAPSED:
        assert harness.bmc.orders == []
        assert harness.marks() == CLEAN


def test_an_outcome_does_not_wait_for_a_release_that_is_refused(harness: NodeHarness) -> None:
    harness.order()
    while "cordon" not in [each.step for each in harness.repair().status.undo] or not harness.marks()[0]:
        harness.one_pass()
    connection = refuse(harness, lambda method, path: method == "PATCH" and "/nodes/" in path)
    harness.files.pop(harness.path)
    harness.put(harness.record(expires_at=harness.now))

    drive(harness, timedelta(hours=1))

    status = harness.repair().status
    assert (status.phase.final, status.released, bool(status.recorded)) == (True, False, True)
    assert "cordon" in harness.outcome()["kept"]
    assert harness.marks()[0]

    connection.refuses = lambda _method, _path: False
    drive(harness, timedelta(minutes=5))
    assert harness.repair().status.released
    assert harness.marks() == CLEAN
