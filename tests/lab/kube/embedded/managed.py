"""metadata.managedFields: who wrote which field last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.state import Request


def recorded(request: Request, old: Obj | None, new: Obj, now: str) -> Obj:
    """The new object with the fields this write changed recorded for its manager."""
    return new
