"""probes: the services that a node shares with all others answer: names, the API server (table 1.2).

One that does not is never a reason to repair a node. File servers are asked by the check `mounts`.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlsplit

import msgspec

from checks.check import Check, Look, Rule, Scene, Seen, Symptom
from checks.finding import Action, Severity
from checks.host.net_probe import Asked, connect, greet, is_address, resolve

API = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
"""Variables by which the kubelet tells every container where the API server is."""


class Bot(msgspec.Struct, frozen=True):
    """Where the agent reports to."""

    url: str


class Probes:
    """The check, with the questions that are under way. `environment` says where the API server is."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._api = tuple(environment.get(name, "") for name in API)
        self._asked = Asked()

    def look(self, scene: Scene) -> Look:
        """Look up the bot's name and those of the policy; reach for the API server and its endpoints."""
        seconds = scene.policy.network.probe_seconds
        questions: dict[str, Callable[[], object]] = {}
        symptoms: dict[str, Symptom] = {}
        for name in _names(scene):
            questions[f"name {name}"] = partial(resolve, name)
            symptoms[f"name {name}"] = _symptom("dns-fails", name, f"The name {name} does not resolve")
        host, port = self._api
        if host and port.isdigit():
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            questions["api"] = partial(greet, host, int(port), seconds)
            symptoms["api"] = _symptom("api-unreachable", place, f"The API server at {place} does not answer")
        for place in scene.policy.expected.endpoints:
            host, _, port = place.rpartition(":")
            questions[place] = partial(connect, host.strip("[]"), int(port), seconds)
            symptoms[place] = _symptom("endpoint-unreachable", place, f"Nothing answers at {place}")
        troubles = self._asked.answers(questions, seconds)
        failing = {name: trouble for name, trouble in troubles.items() if trouble}
        return Seen(
            symptoms=tuple(
                msgspec.structs.replace(symptoms[name], evidence=trouble) for name, trouble in failing.items()
            )
        )


def _names(scene: Scene) -> tuple[str, ...]:
    bot = scene.held(Bot)
    host = urlsplit(bot.url).hostname if isinstance(bot, Bot) else None
    own = () if host is None or is_address(host) else (host,)
    return tuple(dict.fromkeys((*own, *scene.policy.expected.names)))


def _symptom(code: str, device: str, text: str) -> Symptom:
    return Symptom(
        code=code,
        subsystem="network",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=device,
        summary=f"{text} from this node; no repair of the node can help.",
    )


CHECK = Check(
    name="probes",
    about="names resolve, the API server and other shared services answer",
    look=Probes(os.environ).look,
    rule=Rule(raise_polls=3, clear_polls=2, boot_grace_seconds=300.0),
)
