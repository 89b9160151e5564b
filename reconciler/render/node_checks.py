"""The ConfigMap that brings each pool's check policy to its nodes, where agents read it as files."""

from typing import Any

import msgspec

from checks.policy import Policy
from reconciler.config.schema import Config

NAME = "clusterwright-checks"
"""Name of the ConfigMap; the agent's DaemonSet mounts it and our rights name it."""


def config_map(config: Config, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap with one key `<pool>.json` a pool; what is a default is left out of it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace},
        "data": {
            f"{pool.name}.json": msgspec.json.encode(config.checks.get(pool.name, Policy())).decode()
            for pool in config.pools
        },
    }
