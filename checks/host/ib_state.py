"""ib-state: the node's InfiniBand ports are up (table 1.2). All down at once is a fault of the reader."""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Escalation, Observation, Symptom
from checks.finding import Action, Severity
from checks.host import infiniband
from checks.host.infiniband import Port


def observe(context: CheckContext) -> CheckResult:
    """Judge each watched port. A port that cannot be read is not judged."""
    ports = infiniband.ports(context.root)
    up = {name: 1.0 for name, port in ports.items() if port.up}
    watched = infiniband.watched(context, {**context.past, **dict.fromkeys(up, ())})
    symptoms = []
    for name in watched:
        port = ports.get(name)
        if port is None:
            symptoms.append(_symptom(name, "is not there", context))
        elif not (port.up or port.state is None or infiniband.is_switched_off(context.root, port)):
            symptoms.append(_symptom(name, _words(port), context))
    # A port that was up once is remembered for as long as this boot lasts.
    return Observation(
        symptoms=tuple(symptoms), readings={**dict.fromkeys(context.past, 1.0), **up}, of=len(watched)
    )


def _words(port: Port) -> str:
    return f"is {port.state}, its link {port.physical or 'unreadable'}"


def _symptom(name: str, state: str, context: CheckContext) -> Symptom:
    return Symptom(
        code="ib-state",
        subsystem="ib",
        severity=Severity.WARNING,
        action=Action.NONE,
        device=name,
        summary=f"The InfiniBand port {name} is down.",
        evidence=f"{name} {state}",
        escalation=Escalation(context.policy.network.ib_down_seconds, Severity.CRITICAL, Action.FAILOVER),
    )


CHECK = Check(
    name="ib-state",
    about="the InfiniBand ports are up",
    observe=observe,
    every_seconds=30.0,
    rule=DebounceRule(raise_polls=3, clear_seconds=600.0, boot_grace_seconds=300.0),
    all_code="ib-all-gone",
)
