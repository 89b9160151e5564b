"""boot: the node has rebooted, and none of our repairs did it (table 1.3).

Boot ids alone decide: arithmetic on wall clocks counts reboots twice. Nothing is reported before the bot has
said, in this boot, which boots our repairs ended.
"""

from checks.check import (
    WELL,
    Check,
    CheckContext,
    CheckResult,
    DebounceRule,
    Observation,
    Symptom,
)
from checks.finding import Action, Severity


def observe(context: CheckContext) -> CheckResult:
    """Report for as long as the policy says that the boot before this one ended without us."""
    facts = context.facts
    if not facts.previous_boot_id or facts.repair_ended_previous_boot is not False:
        return WELL
    if context.uptime >= context.policy.host.boot_seconds:
        return WELL
    return Observation(
        symptoms=(
            Symptom(
                code="boot",
                subsystem="boot",
                severity=Severity.WARNING,
                action=Action.ASK,
                summary="The node has rebooted, and none of our repairs did it.",
                evidence=f"the previous boot was {facts.previous_boot_id}",
            ),
        )
    )


CHECK = Check(
    name="boot",
    about="the node has not rebooted without a repair of ours",
    observe=observe,
    rule=DebounceRule(clear_polls=1),
    needs_agent=True,
)
