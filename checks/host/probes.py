"""probes: the services that all nodes share answer: DNS, the API server, further endpoints (table 1.2).

A shared service that fails is never a reason to repair a node. The check `mounts` covers file servers.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlsplit

import msgspec

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom
from checks.finding import Action, Severity
from checks.host.net_probe import NetProbe, connect, greet, is_address, resolve

API = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""Variables with which the kubelet tells every container where the API server is."""


class ProbesCheck:
    """The check, with the probes that are still running. `environment` says where the API server is."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._api = tuple(environment.get(name, "") for name in API)
        self._net = NetProbe()

    def observe(self, context: CheckContext) -> CheckResult:
        """Resolve the names of the bot and the policy; connect to the API server and the endpoints."""
        seconds = context.policy.network.probe_seconds
        probes: dict[str, Callable[[], object]] = {}
        symptoms: dict[str, Symptom] = {}
        for name in _names(context):
            probes[f"name {name}"] = partial(resolve, name)
            symptoms[f"name {name}"] = _symptom("dns-fails", name, f"The name {name} does not resolve")
        host, port = self._api
        if host and port.isdigit():
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            probes["api"] = partial(greet, host, int(port), seconds)
            symptoms["api"] = _symptom("api-unreachable", place, f"The API server at {place} does not answer")
        for place in context.policy.expected.endpoints:
            host, _, port = place.rpartition(":")
            probes[place] = partial(connect, host.strip("[]"), int(port), seconds)
            symptoms[place] = _symptom("endpoint-unreachable", place, f"Nothing answers at {place}")
        errors = self._net.run_all(probes, seconds)
        failing = {name: error for name, error in errors.items() if error}
        return Observation(
            symptoms=tuple(
                msgspec.structs.replace(symptoms[name], evidence=error) for name, error in failing.items()
            )
        )


def _names(context: CheckContext) -> tuple[str, ...]:
    host = urlsplit(context.facts.bot_url).hostname
    own = () if host is None or is_address(host) else (host,)
    return tuple(dict.fromkeys((*own, *context.policy.expected.names)))


def _symptom(code: str, device: str, text: str) -> Symptom:
    return Symptom(
        code=code,
        subsystem="network",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=device,
        summary=f"{text} from this node. The service is shared: repairing the node does not help.",
    )


CHECK = Check(
    name="probes",
    about="names resolve, the API server and other shared services answer",
    observe=ProbesCheck(os.environ).observe,
    rule=DebounceRule(raise_polls=3, clear_polls=2, boot_grace_seconds=300.0),
)
