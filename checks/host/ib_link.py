"""ib-flap, ib-rate and ib-errors: InfiniBand links that flap, are too slow, or have errors (table 1.2)."""

from checks.check import Check, CheckContext, CheckResult, DebounceRule, Observation, Symptom
from checks.counters import increase_within
from checks.finding import Action, Severity
from checks.host import infiniband

BOOT_GRACE_SECONDS = 300.0
"""Links are not judged in the first minutes of a boot (rule T20)."""

HOUR_SECONDS = 3600.0


def observe_flaps(context: CheckContext) -> CheckResult:
    """Count losses of each link. Those of the first half hour of uptime are not counted (OCI)."""
    limits = context.policy.network
    if context.uptime < limits.ib_flap_grace_seconds:
        return Observation()
    symptoms, readings = [], {}
    for port in infiniband.watched_ports(context):
        downs = infiniband.counter(port, "link_downed")
        if downs is None:
            continue
        readings[port.name] = float(downs)
        lost = increase_within(context.past, port.name, downs, context.uptime, limits.ib_flap_seconds)
        if lost:
            symptoms.append(
                Symptom(
                    code="ib-flap",
                    subsystem="ib",
                    severity=Severity.CRITICAL,
                    action=Action.FAILOVER,
                    device=port.name,
                    summary=f"The link of {port.name} goes down and comes back repeatedly.",
                    evidence=f"lost {lost:.0f} times in {limits.ib_flap_seconds / HOUR_SECONDS:.1f} h",
                    only_holds=lost < limits.ib_flaps,
                    at_once=lost >= limits.ib_flaps,
                )
            )
    return Observation(symptoms=tuple(symptoms), readings=readings)


def observe_rates(context: CheckContext) -> CheckResult:
    """Compare the rate of each port that is up with the configuration."""
    wanted = context.policy.expected.ib_rate_gbps
    if wanted is None:
        return Observation()
    rates = {each.name: infiniband.rate_gbps(each) for each in infiniband.watched_ports(context) if each.up}
    slow = {name: rate for name, rate in rates.items() if rate is not None and rate < wanted}
    return Observation(
        symptoms=tuple(
            Symptom(
                code="ib-rate",
                subsystem="ib",
                severity=Severity.WARNING,
                action=Action.ASK,
                device=name,
                summary=f"The port {name} is slower than the ports of its pool.",
                evidence=f"{rate:g} of {wanted:g} Gb/s",
            )
            for name, rate in slow.items()
        )
    )


def observe_errors(context: CheckContext) -> CheckResult:
    """Judge the growth of each port's symbol errors in the last hour."""
    limit = context.policy.network.ib_symbol_errors_per_hour
    symptoms, readings = [], {}
    for port in infiniband.watched_ports(context):
        errors = infiniband.counter(port, "symbol_error")
        if errors is None:
            continue
        readings[port.name] = float(errors)
        hourly = increase_within(context.past, port.name, errors, context.uptime, HOUR_SECONDS)
        if hourly:
            symptoms.append(
                Symptom(
                    code="ib-errors",
                    subsystem="ib",
                    severity=Severity.WARNING,
                    action=Action.ASK,
                    device=port.name,
                    summary=f"The link of {port.name} has many symbol errors: check cable and transceiver.",
                    evidence=f"{hourly:.0f} in the last hour, {limit:g} are normal at most",
                    only_holds=hourly <= limit,
                )
            )
    return Observation(symptoms=tuple(symptoms), readings=readings)


FLAP = Check(
    name="ib-flap",
    about="InfiniBand links stay up",
    observe=observe_flaps,
    rule=DebounceRule(clear_polls=1),
    remember_seconds=12 * HOUR_SECONDS,
)

RATE = Check(
    name="ib-rate",
    about="InfiniBand links are as fast as configured",
    observe=observe_rates,
    rule=DebounceRule(boot_grace_seconds=BOOT_GRACE_SECONDS),
)

ERRORS = Check(
    name="ib-errors",
    about="InfiniBand links have few symbol errors",
    observe=observe_errors,
    rule=DebounceRule(boot_grace_seconds=BOOT_GRACE_SECONDS),
    remember_seconds=2 * HOUR_SECONDS,
)
