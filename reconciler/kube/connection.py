"""A connection to the API server: authentication, timeouts and raw JSON, for `read` and `write`.

The `kubernetes` client reads kubeconfigs and service accounts; objects stay plain JSON, because its typed
models cost seconds on long lists. Nothing here retries: the caller gets the error and tries again later.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.incluster_config import SERVICE_TOKEN_FILENAME

from reconciler.kube.results import UnavailableError
from reconciler.settings import SettingsError

Object = dict[str, Any]

REPAIRS = "/apis/clusterwright.dev/v1alpha1/repairs"
"""Path of the custom resource Repair."""

POOL_SIZE = 16
"""Connections kept open; that many threads can send requests without a new handshake."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """Status and JSON body of one response; `body` is empty when the server sent none."""

    status: int
    body: Object

    @property
    def message(self) -> str:
        """The server's message in one line."""
        text = self.body.get("message") or self.body.get("reason") or "no message"
        return " ".join(str(text).split())[:300]


class Connection:
    """An authenticated connection to one API server. Safe to use from many threads.

    With `kubeconfig` None it uses the pod's ServiceAccount. `timeout_seconds` bounds connecting and each read. A
    token file is read again for each request, because the kubelet rotates it.
    """

    def __init__(self, kubeconfig: Path | None, timeout_seconds: float) -> None:
        configuration = client.Configuration()
        try:
            if kubeconfig is None:
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call] # the library's
            else:
                config.load_kube_config(  # type: ignore[no-untyped-call] # the library's
                    str(kubeconfig), client_configuration=configuration, persist_config=False
                )
            self._token_file = Path(SERVICE_TOKEN_FILENAME) if kubeconfig is None else _token_file(kubeconfig)
        except (config.ConfigException, OSError, yaml.YAMLError, ValueError, TypeError) as error:
            raise SettingsError(f"kubernetes.kubeconfig: {kubeconfig or 'in-cluster'}: {error}") from error
        configuration.retries = False
        configuration.connection_pool_maxsize = POOL_SIZE
        self._client = client.ApiClient(configuration)
        self._timeout = (timeout_seconds, timeout_seconds)

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> ApiResponse:
        """Send one request once and return the answer, whatever its status.

        Raises UnavailableError if no complete response came: the request may have been carried out.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            auth = ["BearerToken"]
            if self._token_file is not None:
                headers["Authorization"] = f"Bearer {self._token_file.read_text(encoding='ascii').strip()}"
                auth = []
            call = self._client.param_serialize(
                method,
                path,
                query_params=list((params or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=auth,
            )
            response = self._client.call_api(*call, _request_timeout=self._timeout)
            text = response.read()  # type: ignore[no-untyped-call] # the library's
            return ApiResponse(response.status, msgspec.json.decode(text, type=Object) if text else {})
        except (
            urllib3.exceptions.HTTPError,
            client.ApiException,
            OSError,
            msgspec.DecodeError,
            ValueError,
        ) as error:
            raise UnavailableError(f"{method} {path}: {_reason(error)}") from error


def refused(method: str, path: str, answer: ApiResponse) -> UnavailableError:
    """Return the error for a response that the caller cannot use."""
    return UnavailableError(f"{method} {path}: {answer.status} {answer.message}")


def _token_file(kubeconfig: Path) -> Path | None:
    """Return the current user's token file, None if the kubeconfig names none."""
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    contexts = {each["name"]: each["context"] for each in content.get("contexts") or ()}
    users = {each["name"]: each.get("user") or {} for each in content.get("users") or ()}
    user = users.get(contexts.get(content.get("current-context"), {}).get("user"), {})
    named = user.get("tokenFile")
    return kubeconfig.parent / named if named and not user.get("token") else None


def _reason(error: Exception) -> str:
    if isinstance(error, (TimeoutError, socket.timeout, urllib3.exceptions.TimeoutError)):
        return "timed out"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
