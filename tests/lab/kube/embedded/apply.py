"""Server-side apply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.kube.embedded import patch, schema, write

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.state import Request, State


def apply(state: State, request: Request, body: Obj) -> tuple[Obj, bool]:
    """Merge what a manager wants into the object; returns it and whether it is new."""
    old = state.store.get(request.resource.table, request.namespace, request.name)
    if old is None:
        return write.create(state, request, body), True
    return write.commit(state, request, old, patch.strategic(old, body, schema.of(request.resource))), False
