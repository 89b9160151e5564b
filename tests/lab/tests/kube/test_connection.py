"""The unreliable connection: slow, and broken now and then."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.lab.kube.connection import UnreliableConnection

if TYPE_CHECKING:
    from tests.lab.kube.kube import Kube


def test_some_requests_are_lost_and_the_others_wait(embedded_kube: Kube) -> None:
    found = []
    port = httpx.URL(embedded_kube.url).port
    assert port is not None
    began = time.monotonic()
    with UnreliableConnection(port, seed=1, slowest_seconds=0.02, cut_one_in=8) as connection:
        for _ in range(60):
            try:
                answer = httpx.get(f"http://127.0.0.1:{connection.port}/readyz", trust_env=False)
                found.append(answer.status_code == 200)
            except httpx.TransportError:
                found.append(False)
        assert connection.cuts >= found.count(False) >= 1
    assert found.count(True) >= 20
    assert time.monotonic() - began >= found.count(True) * 0.005


def test_a_stopped_connection_refuses(embedded_kube: Kube) -> None:
    port = httpx.URL(embedded_kube.url).port
    assert port is not None
    with UnreliableConnection(port, seed=1, slowest_seconds=0.0, cut_one_in=1_000_000) as connection:
        url = f"http://127.0.0.1:{connection.port}/readyz"
        assert httpx.get(url, trust_env=False).text == "ok"
    with pytest.raises(httpx.TransportError):
        httpx.get(url, trust_env=False)
