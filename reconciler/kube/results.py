"""What came of a write to Kubernetes, as values, and the marks that our writes leave. Pure."""

from dataclasses import dataclass
from typing import Final

FIELD_MANAGER: Final = "clusterwright-reconciler"
"""Owner of what we write, as `managedFields` shows it."""

TAINT: Final = "clusterwright.dev/repair"
"""Key of our taint; its value is the action id."""

CORDONED_BY: Final = "clusterwright.dev/cordoned-by"
"""Annotation that says which action made the node unschedulable; absent when somebody else did."""


class UnavailableError(Exception):
    """The API server did not answer, or not usefully: nothing is known, try again later."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The change is stored under this resource version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was stored: somebody changed or removed the object since it was read. Read it again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """The eviction was accepted; the pod is gone when it is no longer listed."""


@dataclass(frozen=True, slots=True)
class EvictionBlocked:
    """A disruption budget does not allow the eviction now. `budgets` are the names that the server gave."""

    reason: str
    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodGone:
    """That pod does not exist any more."""
