"""How far a repair is: its phase, and one journal entry for each step or attempt, with facts in typed fields."""

from enum import StrEnum

from pydantic import AwareDatetime

from reconciler.incidents.value import StatusValue


class Phase(StrEnum):
    """Where a repair stands. All but the first two are final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    LAPSED = "Lapsed"
    HELD = "Held"

    @property
    def final(self) -> bool:
        """Whether nothing more will be done under this action id."""
        return self not in (Phase.PENDING, Phase.RUNNING)


class StepState(StrEnum):
    """State of a journal entry.

    `waiting`: looked at, nothing done yet. `intent`: about to act, or acted. `done`: seen done. `not-done`:
    the attempt certainly had no effect.
    """

    WAITING = "waiting"
    INTENT = "intent"
    DONE = "done"
    NOT_DONE = "not-done"


class OrderResult(StrEnum):
    """What became of one order to a machine: five different things (safety rule 14)."""

    NOT_SENT = "not-sent"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    NO_EFFECT = "no-effect"


class OrderFact(StatusValue):
    """One order to a machine: which, when it was given (UTC), and what became of it so far."""

    order: str
    given_at: AwareDatetime
    result: OrderResult = OrderResult.UNKNOWN
    reason: str = ""


class BlockedPod(StatusValue):
    """A pod whose eviction the API server refuses, and the PodDisruptionBudgets that are the reason."""

    namespace: str
    name: str
    budgets: tuple[str, ...] = ()
    reason: str = ""


class DrainFact(StatusValue):
    """How far a drain is: how many pods are left, and which of them cannot be evicted now."""

    pods_left: int
    blocked: tuple[BlockedPod, ...] = ()


class JournalEntry(StatusValue):
    """One line of the journal.

    `started_at` is when the step was first looked at; its limit counts from there. `destructive` marks an
    attempt of the destructive step. `heartbeat` is the node's heartbeat as last looked at, to see whether it
    moves. `drain` and `order` are the facts of the steps that have them. Fields of a newer version are passed
    over.
    """

    name: str
    state: StepState
    started_at: AwareDatetime
    finished_at: AwareDatetime | None = None
    message: str = ""
    destructive: bool = False
    heartbeat: str = ""
    drain: DrainFact | None = None
    order: OrderFact | None = None
