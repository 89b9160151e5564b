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
