"""ethernet: the node's network links are up, unless an administrator took them down (table 1.2)."""

from pathlib import Path

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom
from checks.finding import Action, Severity
from checks.host.files import names, text
from checks.host.infiniband import IFF_UP
from checks.policy import NetworkLimits

CLASS = "sys/class/net"
"""One entry for each interface: `flags`, `type`, `carrier` (unreadable when off), `device` if it is real."""

CLEAR_SECONDS = 300.0
"""How long a link has to be up before the finding clears (table 1.2)."""

ETHERNET = "1"
"""Kind of an Ethernet interface (ARPHRD_ETHER)."""


def observe(context: CheckContext) -> CheckResult:
    """Judge the interfaces of the policy, else the real ones that had a carrier earlier in this boot."""
    real = [name for name in names(context.root / CLASS) or () if _is_real(context.root / CLASS / name)]
    carrying = {name: 1.0 for name in real if text(context.root / CLASS / name / "carrier") == "1"}
    expected = context.policy.expected.nics
    watched = expected or tuple(sorted({*context.past, *carrying}))
    symptoms = []
    for name in watched:
        place = context.root / CLASS / name
        flags = text(place / "flags")
        if flags is None:
            # Moved into a pod or unplugged: a fault only where the policy expects the interface.
            symptoms += [_symptom(name, "is not there", context)] if name in expected else []
        elif int(flags, 16) & IFF_UP and text(place / "carrier") == "0":
            symptoms.append(_symptom(name, "is switched on and has no carrier", context))
    return Observation(
        symptoms=tuple(symptoms), readings={**dict.fromkeys(context.past, 1.0), **carrying}, of=len(watched)
    )


def _is_real(place: Path) -> bool:
    return text(place / "type") == ETHERNET and (place / "device").exists()


def _symptom(name: str, state: str, context: CheckContext) -> Symptom:
    return Symptom(
        code="ethernet",
        subsystem="ethernet",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=name,
        summary=f"The network link {name} is down.",
        evidence=f"{name} {state}",
        rule=DebounceRule(
            raise_seconds=context.policy.network.ethernet_down_seconds, clear_seconds=CLEAR_SECONDS
        ),
    )


CHECK = Check(
    name="ethernet",
    about="the Ethernet links are up",
    observe=observe,
    rule=DebounceRule(raise_seconds=NetworkLimits().ethernet_down_seconds),
)
"""Its rule is that of all links at once; for each single link the policy decides."""
