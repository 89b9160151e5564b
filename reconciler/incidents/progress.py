"""Progress of a repair: its phase, and a journal entry for each step or attempt, with facts in typed fields."""

from enum import StrEnum

from pydantic import AwareDatetime

from reconciler.incidents.value import StatusValue


class Phase(StrEnum):
    """Phase of a repair. All but the first two are final."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    LAPSED = "Lapsed"
    HELD = "Held"

    @property
    def final(self) -> bool:
        """Whether the repair has ended."""
        return self not in (Phase.PENDING, Phase.RUNNING)


class StepState(StrEnum):
    """State of a journal entry.

    `waiting`: looked at, nothing done yet. `intent`: about to act, or has acted. `done`: observed to be done.
    `not-done`: the attempt certainly had no effect.
    """

    WAITING = "waiting"
    INTENT = "intent"
    DONE = "done"
    NOT_DONE = "not-done"


class OrderResult(StrEnum):
    """Result of one order to a machine (safety rule 14)."""

    NOT_SENT = "not-sent"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    UNKNOWN = "unknown"
    NO_EFFECT = "no-effect"


class OrderFact(StatusValue):
    """One order to a machine: which one, when it was given (UTC), and its result so far."""

    order: str
    given_at: AwareDatetime
    result: OrderResult = OrderResult.UNKNOWN
    reason: str = ""


class BlockedPod(StatusValue):
    """A pod that cannot be evicted now, and the PodDisruptionBudgets that prevent it."""

    namespace: str
    name: str
    budgets: tuple[str, ...] = ()
    reason: str = ""


class DrainFact(StatusValue):
    """Progress of a drain: how many pods are left, and which of them cannot be evicted now."""

    pods_left: int
    blocked: tuple[BlockedPod, ...] = ()


class JournalEntry(StatusValue):
    """One entry of the journal.

    `started_at` is when the step was first looked at; its limit counts from there. `destructive` marks an
    attempt of the destructive step. `heartbeat` is the node's last observed heartbeat (ISO 8601), to see
    whether it changes. `drain` and `order` hold the facts of the steps that have them.
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
