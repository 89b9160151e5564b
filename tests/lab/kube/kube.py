"""What both back ends offer: admin requests, tokens, kubeconfigs, a restart."""

from __future__ import annotations

import json
import ssl
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import httpx
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

TIMEOUT_SECONDS = 15.0
"""Of one admin request."""

TOKEN_LEEWAY_SECONDS = 60
"""How long after its end kube-apiserver still takes a token (go-jose's default leeway)."""


class Kube(ABC):
    """A running API server on 127.0.0.1."""

    backend: str
    url: str
    admin_token: str
    ca_file: Path | None = None

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.client_url = ""
        """Where kubeconfigs of service accounts lead, if not straight to the server."""
        self._client: httpx.Client | None = None

    @property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig that may do anything."""
        return self.kubeconfig(self.workdir / "admin.kubeconfig", {"token": self.admin_token})

    def client(self, token: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS) -> httpx.Client:
        """An HTTP client with this token (admin's if None); the caller closes it."""
        context = ssl.create_default_context(cafile=str(self.ca_file)) if self.ca_file else True
        headers = {"Authorization": f"Bearer {self.admin_token if token is None else token}"}
        return httpx.Client(
            base_url=self.url, headers=headers, verify=context, timeout=timeout_seconds, trust_env=False
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        params: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, Any]]:
        """One request as admin, its body always JSON, which is YAML too; the answer's code and JSON body.

        An answer that is no JSON (/readyz, a path outside of the API) comes back as its `message`.

        Raises:
            httpx.TransportError: the server cannot be reached.
        """
        if self._client is None:
            self._client = self.client()
        content = json.dumps(body) if body is not None else None
        reply = self._client.request(
            method, path, content=content, headers={"Content-Type": content_type}, params=params
        )
        try:
            return reply.status_code, reply.json()
        except ValueError:
            return reply.status_code, {"code": reply.status_code, "message": reply.text}

    def token(
        self,
        namespace: str,
        account: str,
        audiences: tuple[str, ...] = (),
        pod: tuple[str, str] | None = None,
        seconds: int = 3600,
    ) -> str:
        """A service account's token, bound to a pod (name, uid) if given; seconds ≤ 0: one that has expired.

        A server takes a token for another minute, which counts as its lifetime here (TOKEN_LEEWAY_SECONDS).

        Raises:
            LookupError: the server refused it.
        """
        spec: dict[str, Any] = {"expirationSeconds": max(seconds, 600)}
        if audiences:
            spec["audiences"] = list(audiences)
        if pod is not None:
            spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": pod[0], "uid": pod[1]}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        code, answer = self.request("POST", path, {"spec": spec})
        if code != 201:
            raise LookupError(f"TokenRequest for {namespace}/{account}: {code} {answer.get('message')}")
        token: str = answer["status"]["token"]
        if seconds >= 600:
            return token
        return self._aged(token, seconds if seconds > 0 else seconds - TOKEN_LEEWAY_SECONDS - 1)

    def kubeconfig_for(self, account: str, namespace: str = "clusterwright") -> Path:
        """A kubeconfig with a fresh token of a service account, in a file that the kubeconfig names."""
        token_file = self.workdir / f"{namespace}-{account}.token"
        token_file.write_text(self.token(namespace, account))
        path = self.workdir / f"{namespace}-{account}.kubeconfig"
        return self.kubeconfig(path, {"tokenFile": str(token_file)}, namespace, self.client_url)

    def kubeconfig(self, path: Path, user: dict[str, str], namespace: str = "", url: str = "") -> Path:
        """Write a kubeconfig for a user entry; `url` is another way to the server than its own."""
        cluster = {"server": url or self.url} | (
            {"certificate-authority": str(self.ca_file)} if self.ca_file else {}
        )
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": "lab", "user": user}],
            "contexts": [
                {
                    "name": "lab",
                    "context": {"cluster": "lab", "user": "lab", "namespace": namespace or "default"},
                }
            ],
            "current-context": "lab",
        }
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        path.chmod(0o600)
        return path

    def wait_ready(self, seconds: float = 30.0) -> None:
        """Return when the server says it is ready.

        Raises:
            TimeoutError: it did not within the time.
        """
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            try:
                with self.client(timeout_seconds=2.0) as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise TimeoutError(f"{self.url} was not ready within {seconds:.0f} s; logs are in {self.workdir}")

    def restart(self, down_seconds: float = 0.0) -> None:
        """Be away for a moment and come back on the same port with the same data."""
        self.pause()
        time.sleep(down_seconds)
        self.resume()

    @abstractmethod
    def pause(self) -> None:
        """Be gone for every client; the data stays."""

    @abstractmethod
    def resume(self) -> None:
        """Serve again, on the same port."""

    @abstractmethod
    def compact(self) -> None:
        """Forget old revisions, so that they are answered with 410; open watches end as by a restart."""

    @abstractmethod
    def watch_nodes(self, grace_seconds: float) -> None:
        """Run node lifecycle, taint eviction and pod garbage collection from now on.

        A node whose Lease was not renewed for `grace_seconds` becomes Ready Unknown and is tainted.
        """

    @contextmanager
    def held_controllers(self) -> Iterator[None]:
        """Let the controllers do nothing meanwhile, as when they are behind with their work."""
        self._hold_controllers(held=True)
        try:
            yield
        finally:
            self._hold_controllers(held=False)

    @abstractmethod
    def throttle(self, namespace: str, account: str) -> httpx.Response:
        """Have API priority and fairness reject a request of a service account; return its answer."""

    @abstractmethod
    def _hold_controllers(self, *, held: bool) -> None:
        """Stop the controllers or let them go on."""

    @abstractmethod
    def stop(self) -> None:
        """End everything that was started."""

    @abstractmethod
    def _aged(self, token: str, seconds: int) -> str:
        """The same token with another end of life, seconds from now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
