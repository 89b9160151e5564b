"""The registry of providers, by their names in plans. To add one, write its module and add it here."""

from typing import Final

from reconciler.repair.providers import redfish
from reconciler.repair.providers.provider import ProviderKind

PROVIDERS: Final[dict[str, ProviderKind]] = {each.name: each for each in (redfish.KIND,)}
"""The first kind that serves a pool acts on its machines."""
