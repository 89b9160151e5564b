"""What every provider speaks: a machine as observed, and what came of the one act that was tried.

A provider looks and acts, it never decides and never repeats; the step list above it reads these values. None
of its methods raises for what the outside does: that comes back as a value with a reason fit for a person.
"""

from dataclasses import dataclass
from typing import Protocol

ON = "On"
OFF = "Off"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its controller shows it now.

    `power` is the controller's own word: `On`, `Off`, or a transition such as `PoweringOn`. `reset_types` are
    the resets it offers, empty when it does not list them. `serial` and `uuid` identify the hardware and
    `boot_progress` is the firmware's last milestone; each is empty where not told.
    """

    power: str
    reset_types: tuple[str, ...] = ()
    serial: str = ""
    uuid: str = ""
    boot_progress: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The controller took the order. That the machine obeyed is for the boot id to prove."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Certainly not done: the controller said no, or the order never left us. It may be given again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Cannot tell. After a reset it may or may not have happened, so it must not be sent again blindly."""

    reason: str


Outcome = Sent | Refused | Unknown


class Provider(Protocol):
    """One way to act on a machine. `system` says which machine, in the provider's own terms."""

    def observe(self, system: str, /) -> Machine | Unknown:
        """Return the machine, or why it cannot be seen now. Changes nothing."""
        ...

    def reset(self, system: str, reset_type: str, /) -> Outcome:
        """Give at most one order to reset the machine and say what came of giving it."""
        ...
