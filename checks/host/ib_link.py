"""ib-flap, ib-rate and ib-errors: links that come and go, are slower than they should be, or err."""

from checks.check import Check, Look, Rule, Scene, Seen, Symptom, grown
from checks.finding import Action, Severity
from checks.host import infiniband

BOOT_GRACE_SECONDS = 300.0
"""No verdict about links in the first minutes of a boot (rule T20)."""

HOUR_SECONDS = 3600.0


def look_for_flaps(scene: Scene) -> Look:
    """Count losses of each link. Those of the first half hour of uptime are not counted (OCI)."""
    limits = scene.policy.network
    if scene.uptime < limits.ib_flap_grace_seconds:
        return Seen()
    symptoms, readings = [], {}
    for port in infiniband.watched_ports(scene):
        downs = infiniband.counter(port, "link_downed")
        if downs is None:
            continue
        readings[port.name] = float(downs)
        lost = grown(scene.past, port.name, downs, scene.uptime, limits.ib_flap_seconds)
        if lost:
            symptoms.append(
                Symptom(
                    code="ib-flap",
                    subsystem="ib",
                    severity=Severity.CRITICAL,
                    action=Action.FAILOVER,
                    device=port.name,
                    summary=f"The link of {port.name} comes and goes.",
                    evidence=f"lost {lost:.0f} times in {limits.ib_flap_seconds / HOUR_SECONDS:.1f} h",
                    only_holds=lost < limits.ib_flaps,
                    at_once=lost >= limits.ib_flaps,
                )
            )
    return Seen(symptoms=tuple(symptoms), readings=readings)


def look_at_rates(scene: Scene) -> Look:
    """Compare the rate of each port that is up with the configuration."""
    wanted = scene.policy.expected.ib_rate_gbps
    if wanted is None:
        return Seen()
    rates = {each.name: infiniband.rate_gbps(each) for each in infiniband.watched_ports(scene) if each.up}
    slow = {name: rate for name, rate in rates.items() if rate is not None and rate < wanted}
    return Seen(
        symptoms=tuple(
            Symptom(
                code="ib-rate",
                subsystem="ib",
                severity=Severity.WARNING,
                action=Action.ASK,
                device=name,
                summary=f"The port {name} is slower than its pool's ports are.",
                evidence=f"{rate:g} of {wanted:g} Gb/s",
            )
            for name, rate in slow.items()
        )
    )


def look_for_errors(scene: Scene) -> Look:
    """Compare each port's symbol errors with an hour ago."""
    limit = scene.policy.network.ib_symbol_errors_per_hour
    symptoms, readings = [], {}
    for port in infiniband.watched_ports(scene):
        errors = infiniband.counter(port, "symbol_error")
        if errors is None:
            continue
        readings[port.name] = float(errors)
        hourly = grown(scene.past, port.name, errors, scene.uptime, HOUR_SECONDS)
        if hourly:
            symptoms.append(
                Symptom(
                    code="ib-errors",
                    subsystem="ib",
                    severity=Severity.WARNING,
                    action=Action.ASK,
                    device=port.name,
                    summary=f"The link of {port.name} has many symbol errors: look at cable and transceiver.",
                    evidence=f"{hourly:.0f} in the last hour, {limit:g} are usual at most",
                    only_holds=hourly <= limit,
                )
            )
    return Seen(symptoms=tuple(symptoms), readings=readings)


FLAP = Check(
    name="ib-flap",
    about="InfiniBand links do not come and go",
    look=look_for_flaps,
    rule=Rule(clear_polls=1),
    remember_seconds=12 * HOUR_SECONDS,
)

RATE = Check(
    name="ib-rate",
    about="InfiniBand links are as fast as configured",
    look=look_at_rates,
    rule=Rule(boot_grace_seconds=BOOT_GRACE_SECONDS),
)

ERRORS = Check(
    name="ib-errors",
    about="InfiniBand links have few symbol errors",
    look=look_for_errors,
    rule=Rule(boot_grace_seconds=BOOT_GRACE_SECONDS),
    remember_seconds=2 * HOUR_SECONDS,
)
