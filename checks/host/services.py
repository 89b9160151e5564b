"""services: kubelet, container runtime and slurmd run and stay up (tables 1.3 and 1.4).

Their processes are observed: access to the runtime's socket would make the agent root on the node. A service
is a child of init. With Slurm on Kubernetes slurmd is a container's process, and its pod restarts it: this
check does not judge it.
"""

from collections.abc import Collection

import msgspec

from checks.check import (
    Check,
    CheckContext,
    CheckResult,
    DebounceRule,
    Escalation,
    Observation,
    Symptom,
    Unobservable,
)
from checks.finding import Action, Severity
from checks.host import process
from checks.host.process import Process
from checks.policy import SERVICES, HostLimits, Service

INIT = 1
"""Parent of a service. A process of the same name with another parent belongs to a pod."""

SEARCH_SECONDS = 60.0
"""How often all processes are searched while a service is missing: thousands of small files."""

SURVEY_SECONDS = 600.0
"""How often they are searched for services that have not run yet in this boot."""

SLURMD = "slurmd"
"""Process of the service that has limits of its own (table 1.4)."""


class RestartLimit(msgspec.Struct, frozen=True):
    """More than `restarts` in `seconds` are too many; up for `up_seconds`, a service is well again.

    `doubt` tells people what else may look like a restart.
    """

    restarts: int
    seconds: float
    up_seconds: float
    doubt: str = ""


class ServicesCheck:
    """The check, with the processes that it found last: it searches again only when one has ended."""

    def __init__(self) -> None:
        self._pids: dict[str, int] = {}
        self._searched_at = -SURVEY_SECONDS

    def observe(self, context: CheckContext) -> CheckResult:
        """Judge each service that the policy names, else those that have run in this boot."""
        named = context.policy.services
        running = self._running(context, named or SERVICES)
        if running is None:
            return Unobservable("the node's processes cannot be listed")
        readings = {name: float(each.started) for name, each in running.items()}
        # A service that is down keeps its last start, so that it stays known.
        readings = {**{name: past[-1][1] for name, past in context.past.items() if past}, **readings}
        symptoms = []
        for service in named or SERVICES:
            limit = _limit_of(service, context.policy.host)
            starts = _starts(context, service.name, readings, limit.seconds)
            if service.name not in running and (named or service.name in readings):
                symptoms.append(_down(service, context.policy.host, limit))
            elif starts and context.uptime - starts[-1] < limit.up_seconds:
                symptoms.append(_restarts(service, len(starts), limit))
        return Observation(symptoms=tuple(symptoms), readings=readings)

    def _running(self, context: CheckContext, services: tuple[Service, ...]) -> dict[str, Process] | None:
        found: dict[str, Process] = {}
        for service in services:
            known = process.read(context.root, self._pids.get(service.name, 0))
            if known is not None and _is(known, service):
                found[service.name] = known
        if self._is_search_due(context, found.keys()):
            self._searched_at = context.uptime
            everything = process.every(context.root)
            if everything is None:
                return None
            for each in everything:
                found |= {own.name: each for own in services if own.name not in found and _is(each, own)}
        self._pids = {name: each.pid for name, each in found.items()}
        return found

    def _is_search_due(self, context: CheckContext, found: Collection[str]) -> bool:
        since = context.uptime - self._searched_at
        lost = any(name not in found for name in self._pids)
        missed = any(name not in found for name in _known(context))
        # Uptime that went back is another boot's.
        return lost or since < 0 or since >= (SEARCH_SECONDS if missed else SURVEY_SECONDS)


def _known(context: CheckContext) -> set[str]:
    """Return the services that have to run: the policy's, or those that have run in this boot."""
    return {each.name for each in context.policy.services} or set(context.past)


def _is(found: Process, service: Service) -> bool:
    return found.name == service.process and found.parent == INIT and found.state not in "ZX"


def _limit_of(service: Service, limits: HostLimits) -> RestartLimit:
    if service.process == SLURMD:
        # Newer versions of slurmd replace themselves by a new process to reload the configuration.
        doubt = "; each `scontrol reconfigure` may be one"
        return RestartLimit(
            limits.slurmd_restarts, limits.slurmd_restart_seconds, up_seconds=600.0, doubt=doubt
        )
    return RestartLimit(limits.service_restarts, limits.service_restart_seconds, up_seconds=300.0)


def _starts(context: CheckContext, name: str, readings: dict[str, float], seconds: float) -> list[float]:
    """Return when the service was restarted in the last `seconds`, in seconds since boot."""
    past = [*context.past.get(name, ())]
    if name in readings and (not past or past[-1][1] != readings[name]):
        past.append((context.uptime, readings[name]))
    return [at for at, _ in past[1:] if at >= context.uptime - seconds]


def _down(service: Service, limits: HostLimits, limit: RestartLimit) -> Symptom:
    return Symptom(
        code="service-down",
        subsystem="service",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=service.name,
        summary=f"{service.name} is not running.",
        escalation=Escalation(limits.service_critical_seconds, Severity.CRITICAL, Action.REBOOT),
        rule=DebounceRule(
            raise_seconds=limits.service_down_seconds,
            clear_seconds=limit.up_seconds,
            boot_grace_seconds=300.0,
        ),
    )


def _restarts(service: Service, count: int, limit: RestartLimit) -> Symptom:
    return Symptom(
        code="service-restarts",
        subsystem="service",
        severity=Severity.CRITICAL,
        action=Action.REBOOT,
        device=service.name,
        summary=f"{service.name} restarts again and again.",
        evidence=f"restarted {count} times in {limit.seconds / 60:.0f} min{limit.doubt}",
        only_holds=count <= limit.restarts,
        rule=DebounceRule(raise_polls=1, clear_polls=1, boot_grace_seconds=300.0),
    )


CHECK = Check(
    name="services",
    about="kubelet, container runtime and slurmd run and stay up",
    observe=ServicesCheck().observe,
    every_seconds=30.0,
)
