"""What people write about a cluster: its pools, who may approve, and the numbers that bound repairs.

Field names in the files are camelCase, as in Kubernetes; unknown fields are refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from checks.policy import Policy

API_VERSION: Final = "clusterwright.dev/v1alpha1"

NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
"""A DNS label, as Kubernetes requires it."""

_UNITS = {"s": 1, "m": 60, "h": 3600}


def duration(text: object) -> timedelta:
    """Return the time span of `90s`, `30m` or `2h`; raises ValueError for anything else."""
    if isinstance(text, timedelta):
        return text
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text) if isinstance(text, str) else None
    if found is None:
        raise ValueError('must be a time such as "90s", "30m" or "2h"')
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _text(span: timedelta) -> str:
    return f"{int(span.total_seconds())}s"


Duration = Annotated[timedelta, BeforeValidator(duration), PlainSerializer(_text, return_type=str)]
"""A time span, written as a whole number with its unit."""


class ConfigModel(BaseModel):
    """A frozen value from the cluster repository that refuses unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class Metadata(ConfigModel):
    """Name of an object."""

    name: Annotated[str, Field(pattern=NAME, max_length=253)]


class RedfishAddress(ConfigModel):
    """The address of a pool's BMCs; `{node}` in `system` is replaced by the node's name."""

    system: Annotated[str, Field(pattern=r"^https?://[^\s]*\{node\}[^\s]*$")]


class Pool(ConfigModel):
    """Nodes of one kind: those that carry every label of `node_selector`.

    `gpus_per_node` is the number of GPUs that a healthy node has.
    """

    name: Annotated[str, Field(pattern=NAME)]
    node_selector: dict[str, str] = {}
    gpus_per_node: Annotated[int, Field(ge=0, le=64)] = 8
    redfish: RedfishAddress | None = None

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels belongs to the pool."""
        return all(labels.get(key) == value for key, value in self.node_selector.items())


class Approver(ConfigModel):
    """A person who may approve. `email` is the identity; case is ignored."""

    name: Annotated[str, Field(min_length=1)]
    email: Annotated[str, Field(pattern=r"^[^@\s<>]+@[^@\s<>]+$")]


class ClusterSpec(ConfigModel):
    """A cluster's pools, in the order in which they are matched."""

    pools: Annotated[tuple[Pool, ...], Field(min_length=1)]


class AccessSpec(ConfigModel):
    """Who may do what."""

    approvers: tuple[Approver, ...] = ()


class RepairPolicy(ConfigModel):
    """The numbers that bound repairs (safety rules 1, 6 and 8).

    `approval_lifetime` counts from the approval. `graceful_timeout` is how long a restart may take before a forced
    one, `boot_timeout` how long a node may take to show a new boot id.
    `max_in_repair_percent` bounds the nodes of a pool that are in repair at once, never below one node.
    """

    approval_lifetime: Duration = timedelta(minutes=60)
    drain_timeout: Annotated[Duration, Field(le=timedelta(minutes=60))] = timedelta(minutes=30)
    graceful_timeout: Duration = timedelta(minutes=5)
    boot_timeout: Duration = timedelta(minutes=30)
    verify_timeout: Duration = timedelta(minutes=20)
    max_in_repair_percent: Annotated[int, Field(ge=1, le=10)] = 2


class ClusterObject(ConfigModel):
    """`kind: Cluster`, exactly one per repository."""

    api_version: Literal["clusterwright.dev/v1alpha1"]
    kind: Literal["Cluster"]
    metadata: Metadata
    spec: ClusterSpec


class AccessObject(ConfigModel):
    """`kind: Access`, exactly one per repository."""

    api_version: Literal["clusterwright.dev/v1alpha1"]
    kind: Literal["Access"]
    metadata: Metadata
    spec: AccessSpec


class RepairPolicyObject(ConfigModel):
    """`kind: RepairPolicy`, at most one per repository; without it the defaults apply."""

    api_version: Literal["clusterwright.dev/v1alpha1"]
    kind: Literal["RepairPolicy"]
    metadata: Metadata
    spec: RepairPolicy = RepairPolicy()


class NodeChecksSpec(ConfigModel):
    """The settings of the checks on a node, by pool, with a default for pools that are not named.

    The values are those of `checks.policy.Policy` and are validated as such.
    """

    pools: dict[str, dict[str, Any]] = {}
    default: dict[str, Any] = {}


class NodeChecksObject(ConfigModel):
    """`kind: NodeChecks`, at most one per repository; without it the agents' defaults apply."""

    api_version: Literal["clusterwright.dev/v1alpha1"]
    kind: Literal["NodeChecks"]
    metadata: Metadata
    spec: NodeChecksSpec = NodeChecksSpec()


ConfigObject = ClusterObject | AccessObject | RepairPolicyObject | NodeChecksObject

KINDS: Final[Mapping[str, type[ConfigObject]]] = {
    "Cluster": ClusterObject,
    "Access": AccessObject,
    "RepairPolicy": RepairPolicyObject,
    "NodeChecks": NodeChecksObject,
}


@dataclass(frozen=True, slots=True)
class Config:
    """A cluster's whole configuration at one commit. `checks` has the policy of each pool's nodes."""

    cluster: str
    pools: tuple[Pool, ...]
    approvers: tuple[Approver, ...]
    policy: RepairPolicy
    checks: Mapping[str, Policy] = field(default_factory=dict)

    def pool_of(self, labels: Mapping[str, str]) -> Pool | None:
        """Return the first pool that holds a node with these labels."""
        return next((pool for pool in self.pools if pool.holds(labels)), None)

    def approver(self, email: str) -> Approver | None:
        """Return the approver with that address, None if there is none."""
        return next((each for each in self.approvers if each.email.casefold() == email.casefold()), None)
