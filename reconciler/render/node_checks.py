"""The ConfigMap with each pool's check policy; the agents mount it and read it as files."""

from typing import Any

import msgspec

from checks.policy import Policy
from reconciler.config.schema import Config

NAME = "clusterwright-checks"
"""Name of the ConfigMap; the agent's DaemonSet and our RBAC rules refer to it."""


def config_map(config: Config, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap with one key `<pool>.json` per pool; defaults are left out."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace},
        "data": {
            f"{pool.name}.json": msgspec.json.encode(config.checks.get(pool.name, Policy())).decode()
            for pool in config.pools
        },
    }
