"""Custom resources against their definition's schema: pruning and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.registry import Resource


def pruned(resource: Resource, obj: Obj) -> Obj:
    """The object without the fields its schema does not know."""
    return obj


def validate(resource: Resource, obj: Obj, old: Obj | None) -> None:
    """Refuse what the schema refuses."""
