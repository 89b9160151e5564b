"""What every part of the embedded server works on."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.lab.kube.embedded.faults import Faults
from tests.lab.kube.embedded.registry import Registry, Resource
from tests.lab.kube.embedded.storage import Store
from tests.lab.kube.embedded.tokens import Identity, Signer

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class State:
    """The data of one server; it outlives the listening socket."""

    admin_token: str
    store: Store = field(default_factory=Store)
    registry: Registry = field(default_factory=Registry)
    signer: Signer = field(default_factory=Signer)
    faults: Faults = field(default_factory=Faults)
    held: bool = False
    """Whether the controllers do nothing for now."""

    def now(self) -> float:
        """Seconds since the epoch: the lab's only clock is the wall clock."""
        return time.time()


@dataclass(frozen=True, slots=True)
class Request:
    """One resource request after routing and authentication."""

    resource: Resource
    namespace: str
    name: str
    subresource: str
    identity: Identity
    query: Mapping[str, str]
    manager: str
    """fieldManager as given, else the first part of the User-Agent, as in kube-apiserver."""

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"


def stamp(seconds: float) -> str:
    """RFC 3339 with seconds, as in metadata."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
