"""Results of writes to Kubernetes, and the marks that they leave on a node. Pure."""

from dataclasses import dataclass
from typing import Final

FIELD_MANAGER: Final = "clusterwright-reconciler"
"""Field manager of our writes in `managedFields`."""

TAINT: Final = "clusterwright.dev/repair"
"""Key of our taint; its value is the action id."""

CORDONED_BY: Final = "clusterwright.dev/cordoned-by"
"""Annotation with the id of the action that cordoned the node; absent if somebody else did."""


class UnavailableError(Exception):
    """The API server gave no usable response: nothing is known, try again later."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The change is stored under this resource version."""

    resource_version: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was stored: the object changed or was removed since it was read. Read it again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """The eviction was accepted. The pod is gone once it is no longer listed."""


@dataclass(frozen=True, slots=True)
class EvictionBlocked:
    """A disruption budget does not allow the eviction now. `budgets` are the names in the response."""

    reason: str
    budgets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodGone:
    """The pod does not exist any more."""
