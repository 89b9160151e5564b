"""services: kubelet and container runtime run and stay up (table 1.3).

Told by their processes: being allowed to speak on the runtime's socket is being root on the node, which the
agent should not be.
"""

from collections.abc import Collection

from checks.check import Blind, Check, Look, Rule, Scene, Seen, Symptom, Worse
from checks.finding import Action, Severity
from checks.host import process
from checks.host.process import Process
from checks.policy import SERVICES, HostLimits, Service

INIT = 1
"""Parent of a service; one of the same name below something else is a pod's own."""


SEARCH_SECONDS = 60.0
"""How often all processes are searched while a service is missed: some thousand small files."""

SURVEY_SECONDS = 600.0
"""How often they are searched for services that have not run in this boot yet."""


class Services:
    """The check, with the processes it found last: all of them are searched only when one has ended."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._searched_at = -SURVEY_SECONDS

    def look(self, scene: Scene) -> Look:
        """Look after each service that the policy names, else after those that have run in this boot."""
        named = scene.policy.services
        running = self._running(scene, named or SERVICES)
        if running is None:
            return Blind("the node's processes cannot be listed")
        readings = {name: float(each.started) for name, each in running.items()}
        # A service that is down keeps its last start, so that it stays known.
        readings = {**{name: past[-1][1] for name, past in scene.past.items() if past}, **readings}
        symptoms = []
        for service in named or SERVICES:
            starts = _starts(scene, service.name, readings)
            if service.name not in running and (named or service.name in readings):
                symptoms.append(_down(service, scene.policy.host))
            elif starts:
                symptoms.append(_restarts(service, starts, scene.policy.host))
        return Seen(symptoms=tuple(symptoms), readings=readings)

    def _running(self, scene: Scene, services: tuple[Service, ...]) -> dict[str, Process] | None:
        found: dict[str, Process] = {}
        for service in services:
            known = process.read(scene.root, self._pids.get(service.name, 0))
            if known is not None and _is(known, service):
                found[service.name] = known
        if self._is_search_due(scene, found.keys()):
            self._searched_at = scene.uptime
            everything = process.every(scene.root)
            if everything is None:
                return None
            for each in everything:
                found |= {own.name: each for own in services if own.name not in found and _is(each, own)}
        self._pids = {name: each.pid for name, each in found.items()}
        return found

    def _is_search_due(self, scene: Scene, found: Collection[str]) -> bool:
        since = scene.uptime - self._searched_at
        lost = any(name not in found for name in self._pids)
        missed = any(name not in found for name in _known(scene))
        # Uptime that went back is another boot's.
        return lost or since < 0 or since >= (SEARCH_SECONDS if missed else SURVEY_SECONDS)


def _known(scene: Scene) -> set[str]:
    """Return the services that have to run: the policy's, or those that have run in this boot."""
    return {each.name for each in scene.policy.services} or set(scene.past)


def _is(found: Process, service: Service) -> bool:
    return found.name == service.process and found.parent == INIT and found.state not in "ZX"


def _starts(scene: Scene, name: str, readings: dict[str, float]) -> int:
    """Return how often the service began anew in the time that counts."""
    past = [*scene.past.get(name, ())]
    if name in readings and (not past or past[-1][1] != readings[name]):
        past.append((scene.uptime, readings[name]))
    since = scene.uptime - scene.policy.host.service_restart_seconds
    return sum(at >= since for at, _ in past[1:])


def _down(service: Service, limits: HostLimits) -> Symptom:
    return Symptom(
        code="service-down",
        subsystem="service",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=service.name,
        summary=f"{service.name} does not run.",
        worse=Worse(limits.service_critical_seconds, Severity.CRITICAL, Action.REBOOT),
        rule=Rule(raise_seconds=limits.service_down_seconds, clear_seconds=300.0, boot_grace_seconds=300.0),
    )


def _restarts(service: Service, count: int, limits: HostLimits) -> Symptom:
    return Symptom(
        code="service-restarts",
        subsystem="service",
        severity=Severity.CRITICAL,
        action=Action.REBOOT,
        device=service.name,
        summary=f"{service.name} does not stay up.",
        evidence=f"began anew {count} times in {limits.service_restart_seconds / 60:.0f} min",
        only_holds=count <= limits.service_restarts,
        rule=Rule(raise_polls=1, clear_seconds=300.0, boot_grace_seconds=300.0),
    )


CHECK = Check(
    name="services",
    about="kubelet and container runtime run and stay up",
    look=Services().look,
    every_seconds=20.0,
)
