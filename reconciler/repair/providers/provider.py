"""The seam to whatever acts on machines: a machine as observed, one order at a time, and what came of it. Pure.

A provider looks and acts; it never decides and never repeats. Nothing that it meets outside is raised: it
comes back as a value with a reason that people can read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reconciler.config.schema import Pool
from reconciler.incidents.progress import OrderResult
from reconciler.settings import ReconcilerTable


class Capability(StrEnum):
    """What a kind of provider can do to a machine; an action names the one that it needs."""

    RESTART = "restart"


class Order(StrEnum):
    """What a machine can be told. `restart` lets the operating system shut down first, `force` does not."""

    RESTART = "restart"
    FORCE_RESTART = "forced restart"


class Power(StrEnum):
    """Whether a machine has power; `changing` is anything between on and off."""

    ON = "on"
    OFF = "off"
    CHANGING = "changing"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as its provider sees it now.

    `orders` are the orders that it takes. `serial` and `uuid` identify the hardware, `detail` is the
    provider's own word for its state; each is empty where it is not told.
    """

    power: Power
    orders: frozenset[Order]
    serial: str = ""
    uuid: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unobservable:
    """The machine cannot be seen now; nothing is known about it."""

    reason: str


@dataclass(frozen=True, slots=True)
class OrderOutcome:
    """What became of one order.

    `not-sent` and `refused` are certain: the order had no effect and may be given again. `accepted` says that
    the provider took it, not that the machine obeyed. `unknown` may or may not have happened.
    """

    result: OrderResult
    reason: str = ""


class Provider(Protocol):
    """One way to act on machines. `machine` says which machine, in the provider's own terms."""

    def observe(self, machine: str, /) -> Machine | Unobservable:
        """Return the machine, or why it cannot be seen now. Changes nothing."""
        ...

    def act(self, machine: str, action_id: str, order: Order, /) -> OrderOutcome:
        """Give the order at most once, carrying the action id where the provider can, and say what came of it."""
        ...

    def outcome(self, machine: str, action_id: str, /) -> OrderOutcome:
        """Return what the provider knows of an order that was given before, under this action id."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of provider: its name in plans, what it can do, and which machine a node of a pool is to it.

    `machine` returns None for a pool that this kind does not serve.
    """

    name: str
    capabilities: frozenset[Capability]
    machine: Callable[[Pool, str], str | None]
    connect: Callable[[ReconcilerTable], Provider]
