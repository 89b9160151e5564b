"""The embedded back end: an API server in Python, ready at once."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.server import EmbeddedServer
from tests.lab.kube.kube import Kube

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from tests.lab.kube.embedded.faults import Faults


class EmbeddedKube(Kube):
    """Plain HTTP, in this process, in a thread of its own."""

    backend = "embedded"

    def __init__(self, workdir: Path) -> None:
        super().__init__(workdir)
        self._server = EmbeddedServer()
        self.admin_token = self._server.admin_token
        self._server.serve()
        self.url = f"http://127.0.0.1:{self._server.port}"

    def pause(self) -> None:
        self._server.pause()

    def resume(self) -> None:
        self._server.serve()

    def compact(self) -> None:
        self.pause()
        self._server.compact()
        self.resume()

    @property
    def faults(self) -> Faults:
        """What the server does wrong on purpose."""
        return self._server.state.faults

    def watch_nodes(self, grace_seconds: float) -> None:
        self._server.watch_nodes(grace_seconds)

    def throttle(self, namespace: str, account: str) -> httpx.Response:
        self.faults.throttle(user=f"system:serviceaccount:{namespace}:{account}")
        with self.client(self.token(namespace, account)) as client:
            return client.get("/api/v1/nodes")

    def _hold_controllers(self, *, held: bool) -> None:
        self._server.hold_controllers(held=held)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self._server.close()

    def _aged(self, token: str, seconds: int) -> str:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        now = int(time.time())
        return self._server.state.signer.sign(
            {**claims, "exp": now + seconds, "iat": now + min(seconds, 0) - 600}
        )
