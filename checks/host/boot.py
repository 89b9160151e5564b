"""boot: the node has rebooted, and no repair of ours made it (table 1.3).

Told by boot ids alone: arithmetic on wall clocks doubles reboots. Nothing is said before the bot has said, in
this boot, which boots our repairs ended.
"""

import msgspec

from checks.check import WELL, Blind, Check, Look, Rule, Scene, Seen, Symptom
from checks.finding import Action, Severity


class Boot(msgspec.Struct, frozen=True):
    """`previous` is the id of the boot before this one, empty when it is not known.

    `ours` says whether a repair of ours ended it, None while the bot has not answered in this boot.
    """

    previous: str
    ours: bool | None


def look(scene: Scene) -> Look:
    """Tell of a boot before this one that ended without us, for as long as the policy says."""
    boot = scene.held(Boot)
    if not isinstance(boot, Boot) or not boot.previous or boot.ours is not False:
        return boot if isinstance(boot, Blind) else WELL
    if scene.uptime >= scene.policy.host.boot_seconds:
        return WELL
    return Seen(
        symptoms=(
            Symptom(
                code="boot",
                subsystem="boot",
                severity=Severity.WARNING,
                action=Action.ASK,
                summary="The node has rebooted, and no repair of ours made it.",
                evidence=f"the boot before was {boot.previous}",
            ),
        )
    )


CHECK = Check(
    name="boot",
    about="the node has not rebooted by itself",
    look=look,
    rule=Rule(clear_polls=1),
    needs=Boot,
)
