"""The API contract's surroundings: a server of either back end, names of one's own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube

PATIENCE_SECONDS = 45.0
"""For what the real controllers do in their own time: emptying a namespace begins after 5 s there."""

Eventually = Callable[[Callable[[], Any]], Any]


@pytest.fixture
def name() -> str:
    """A name nobody else uses: one server serves the whole session."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def eventually() -> Eventually:
    """Asks until the answer is truthy."""

    def ask(question: Callable[[], Any]) -> Any:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not (answer := question()):
            assert time.monotonic() < ends, f"not true within {PATIENCE_SECONDS:.0f} s"
            time.sleep(0.05)
        return answer

    return ask


@pytest.fixture
def namespace(kube: Kube, name: str, eventually: Eventually) -> Iterator[str]:
    """A namespace with its default ServiceAccount."""
    code, answer = kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert code == 201, answer
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: kube.request("GET", account)[0] == 200)
    yield name
    kube.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def node(kube: Kube) -> Iterator[str]:
    """A node."""
    made = f"gpu-{uuid.uuid4().hex[:10]}"
    code, answer = kube.request("POST", "/api/v1/nodes", {"metadata": {"name": made}})
    assert code == 201, answer
    yield made
    kube.request("DELETE", f"/api/v1/nodes/{made}")
