"""Redfish: acts on a machine through its baseboard management controller (BMC).

A reset is not idempotent: two POSTs are two power cycles. So nothing here is sent twice, every wait is finite,
each call has its own connection (a stale one would make a reply look lost), and an uncertain result is `unknown`.
Credentials go only to the configured scheme, host and port, whatever a BMC answers. Properties are those of
DMTF's ComputerSystem schema (DSP0268).
"""

import json
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from reconciler.config.schema import Pool
from reconciler.incidents.progress import OrderResult
from reconciler.repair.providers.provider import (
    Capability,
    Machine,
    Order,
    OrderOutcome,
    Power,
    ProviderKind,
    UnknownMachine,
)
from reconciler.settings import ReconcilerTable

MAX_REDIRECTS: Final = 3
"""Redirects followed to reach a system; an alias takes one, more than a few are a loop."""

MAX_BODY_BYTES: Final = 1 << 20
"""Largest response read. A ComputerSystem takes about 10 kB; a BMC that sends far more is broken."""

MAX_REASON: Final = 300
"""Characters of a BMC's message that reach a log, a journal or a thread."""

UNDECIDED: Final = frozenset({408, 499})
"""4xx responses that do not prove that nothing happened: a request timed out behind a proxy."""


RESET_TYPES: Final = {Order.RESTART: "GracefulRestart", Order.FORCE_RESTART: "ForceRestart"}
"""Redfish's names for our orders."""

POWER: Final = {"On": Power.ON, "Off": Power.OFF}
"""Redfish's names for power states; every other one is a transition."""


class UnreadableError(Exception):
    """A BMC cannot be read; the text says why. It does not leave this module."""


@dataclass(frozen=True, slots=True)
class RedfishResponse:
    """An HTTP response, its body decoded if it is JSON."""

    url: httpx.URL
    status: int
    location: str
    body: Any


@dataclass(frozen=True, slots=True)
class Redfish:
    """The BMCs that share these credentials (HTTP Basic; none are sent without a `username`).

    `ca_file` holds the authorities that sign the BMCs' certificates, in PEM; without it the system's
    apply. Certificates are always verified. `timeout_seconds` bounds connecting, sending, and waiting for the
    response, each separately; reading a whole response takes at most twice as long.
    """

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    timeout_seconds: float = 10.0

    def observe(self, machine: str, /) -> Machine | UnknownMachine:
        """Return the machine at the URL `machine`, or why it cannot be observed now."""
        try:
            with self._client() as client:
                return _machine(self._read_system(client, machine).body)
        except UnreadableError as error:
            return UnknownMachine(str(error))

    def act(self, machine: str, _action_id: str, order: Order, /) -> OrderOutcome:
        """POST one reset to the machine at the URL `machine`; Redfish has no field for an action id.

        It reads the system first, to find the target of its reset and whether it offers this one. `not-sent`: no
        POST was sent. `refused`: the BMC declined it (4xx, redirect). `unknown`: the POST was sent and no clear
        response came back (5xx, timeout, connection lost). Never repeated, never redirected.
        """
        reset_type = RESET_TYPES[order]
        try:
            with self._client() as client:
                found = self._read_system(client, machine)
                target = _reset_target(found, reset_type)
                return self._post_once(client, target, reset_type)
        except UnreadableError as error:
            return OrderOutcome(OrderResult.NOT_SENT, str(error))

    def outcome(self, _machine: str, _action_id: str, /) -> OrderOutcome:
        """Return `unknown`: a BMC keeps no record of resets by action id."""
        return OrderOutcome(OrderResult.UNKNOWN, "a BMC keeps no record of resets")

    def _client(self) -> httpx.Client:
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise UnreadableError(
                f"CA file {self.ca_file} cannot be used ({_cause(error)}): it must hold PEM certificates"
            ) from error
        return httpx.Client(
            auth=httpx.BasicAuth(self.username, self.password or "") if self.username else None,
            verify=context,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(self.timeout_seconds),
            limits=httpx.Limits(max_keepalive_connections=0),
            headers={"Accept": "application/json", "OData-Version": "4.0"},
        )

    def _read_system(self, client: httpx.Client, system: str) -> RedfishResponse:
        start = _parsed(system)
        url = start
        for _ in range(MAX_REDIRECTS + 1):
            try:
                answer = self._ask(client, client.build_request("GET", url))
            except httpx.HTTPError as error:
                raise UnreadableError(f"BMC {_origin(start)} does not answer: {_cause(error)}") from error
            if answer.status == 200:
                return answer
            if answer.status not in (301, 302, 303, 307, 308) or not answer.location:
                raise UnreadableError(f"BMC {_origin(start)} answered {answer.status}{_words(answer.body)}")
            url = _within(start, answer.url, answer.location)
        raise UnreadableError(f"BMC {_origin(start)} redirects in circles from {start.path}")

    def _post_once(self, client: httpx.Client, target: httpx.URL, reset_type: str) -> OrderOutcome:
        where = f"BMC {_origin(target)}"
        request = client.build_request("POST", target, json={"ResetType": reset_type})
        try:
            answer = self._ask(client, request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return OrderOutcome(OrderResult.NOT_SENT, f"{where} does not answer: {_cause(error)}")
        except httpx.HTTPError as error:
            text = f"{where} was sent {reset_type} and did not answer: {_cause(error)}"
            return OrderOutcome(OrderResult.UNKNOWN, text)
        said = f"{where} answered {answer.status} to {reset_type}{_words(answer.body)}"
        if 200 <= answer.status < 300:
            return OrderOutcome(OrderResult.ACCEPTED)
        if 300 <= answer.status < 500 and answer.status not in UNDECIDED:
            return OrderOutcome(OrderResult.REFUSED, said)
        return OrderOutcome(OrderResult.UNKNOWN, said)

    def _ask(self, client: httpx.Client, request: httpx.Request) -> RedfishResponse:
        deadline = time.monotonic() + 2 * self.timeout_seconds
        response = client.send(request, stream=True)
        try:
            text = b""
            for piece in response.iter_bytes():
                text += piece
                if len(text) > MAX_BODY_BYTES or time.monotonic() > deadline:
                    raise httpx.ReadError("the answer is too long or too slow", request=request)
        finally:
            response.close()
        return RedfishResponse(
            request.url, response.status_code, response.headers.get("Location", ""), _decoded(text)
        )


def _parsed(system: str) -> httpx.URL:
    try:
        url = httpx.URL(system)
    except (httpx.InvalidURL, ValueError) as error:
        raise UnreadableError(f"system {system!r} is not a URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise UnreadableError("system must be an http or https URL with a host and without credentials in it")
    return url


def _within(start: httpx.URL, base: httpx.URL, reference: str) -> httpx.URL:
    """Return the URL of `reference` relative to `base`; refuses another scheme, host or port than those of `start`."""
    try:
        url = base.join(reference)
    except (httpx.InvalidURL, ValueError) as error:
        raise UnreadableError(f"BMC {_origin(start)} names an address that is not a URL") from error
    if _origin(url) != _origin(start) or url.userinfo:
        raise UnreadableError(
            f"BMC {_origin(start)} leads to {_origin(url)}, where our credentials must not go"
        )
    return url


def _origin(url: httpx.URL) -> str:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return f"{url.scheme}://{url.host}:{port}"


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _machine(body: Any) -> Machine:
    if not isinstance(body, dict) or not isinstance(body.get("PowerState"), str):
        raise UnreadableError("the answer is not a Redfish ComputerSystem with a PowerState")
    power, offered = body["PowerState"], _reset_types(body)
    return Machine(
        power=POWER.get(power, Power.CHANGING),
        orders=frozenset(order for order, kind in RESET_TYPES.items() if not offered or kind in offered),
        serial=_string(body.get("SerialNumber")),
        uuid=_string(body.get("UUID")),
        detail=power,
    )


def _reset_target(system: RedfishResponse, reset_type: str) -> httpx.URL:
    action = _reset_action(system.body)
    target = _string(action.get("target"))
    if not target:
        raise UnreadableError(f"system {system.url.path} offers no reset")
    offered = _reset_types(system.body)
    if offered and reset_type not in offered:
        raise UnreadableError(
            f"system {system.url.path} does not offer {reset_type}, only {', '.join(offered)}"
        )
    return _within(system.url, system.url, target)


def _reset_action(body: Any) -> dict[str, Any]:
    return _inner(_inner(body, "Actions"), "#ComputerSystem.Reset")


def _reset_types(body: Any) -> tuple[str, ...]:
    offered = _reset_action(body).get("ResetType@Redfish.AllowableValues")
    return tuple(each for each in offered if isinstance(each, str)) if isinstance(offered, list) else ()


def _inner(body: Any, key: str) -> dict[str, Any]:
    inner = body.get(key) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _words(body: Any) -> str:
    """Return the message of a Redfish error, extended messages first, as the end of a sentence."""
    error = _inner(body, "error")
    extended = error.get("@Message.ExtendedInfo")
    entries = [each for each in extended if isinstance(each, dict)] if isinstance(extended, list) else []
    messages = [_string(each.get("Message")) for each in entries]
    text = " ".join(filter(None, messages)) or _string(error.get("message"))
    printable = "".join(each if each.isprintable() else " " for each in text)
    return f": {printable[:MAX_REASON]}" if printable else ""


def _cause(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:MAX_REASON]


def _address(pool: Pool, node: str) -> str | None:
    return None if pool.redfish is None else pool.redfish.system.replace("{node}", node)


def _connect(settings: ReconcilerTable) -> Redfish:
    """Return the provider of the settings; if the password file cannot be read, the BMC will refuse the login."""
    own = settings.redfish
    password = None
    if own.password_file is not None:
        with suppress(OSError, UnicodeDecodeError):
            password = own.password_file.read_text(encoding="utf-8").strip()
    return Redfish(own.username, password, own.ca_file, own.timeout_seconds)


KIND = ProviderKind(
    name="redfish",
    capabilities=frozenset({Capability.RESTART}),
    machine=_address,
    connect=_connect,
)
