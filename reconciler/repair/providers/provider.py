"""The interface of providers, which act on machines: observe a machine, give one order, report its result. Pure.

A provider never decides and never repeats. It raises nothing for an error outside: it returns a value with a
reason that people can read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reconciler.config.schema import Pool
from reconciler.incidents.progress import OrderResult
from reconciler.settings import ReconcilerTable


class Capability(StrEnum):
    """What a kind of provider can do with a machine; an action names the capability that it needs."""

    RESTART = "restart"


class Order(StrEnum):
    """An order to a machine. `restart` lets the operating system shut down first, `forced restart` does not."""

    RESTART = "restart"
    FORCE_RESTART = "forced restart"


class Power(StrEnum):
    """Whether a machine has power; `changing` is any state between on and off."""

    ON = "on"
    OFF = "off"
    CHANGING = "changing"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its provider sees it now.

    `orders` are the orders that it accepts. `serial` and `uuid` identify the hardware, `detail` is the
    provider's own word for its state; each is empty if unknown.
    """

    power: Power
    orders: frozenset[Order]
    serial: str = ""
    uuid: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class UnknownMachine:
    """The machine cannot be observed now; nothing is known about it."""

    reason: str


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """The result of one order.

    `not-sent` and `refused` are certain: the order had no effect and may be given again. `accepted` means that
    the provider accepted it, not that the machine restarted. `unknown` may or may not have happened.
    """

    result: OrderResult
    reason: str = ""


class Provider(Protocol):
    """One way to act on machines. `machine` identifies the machine in the provider's terms, such as a URL."""

    def observe(self, machine: str, /) -> Machine | UnknownMachine:
        """Return the machine, or why it cannot be observed now. Changes nothing."""
        ...

    def act(self, machine: str, action_id: str, order: Order, /) -> OrderOutcome:
        """Give the order at most once, with the action id if the provider supports one, and return its result."""
        ...

    def outcome(self, machine: str, action_id: str, /) -> OrderOutcome:
        """Return what the provider knows about an earlier order with this action id."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of provider: its name in plans, its capabilities, and how it identifies the machine of a node.

    `machine` returns None for a pool that this kind does not serve.
    """

    name: str
    capabilities: frozenset[Capability]
    machine: Callable[[Pool, str], str | None]
    connect: Callable[[ReconcilerTable], Provider]
