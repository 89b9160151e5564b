"""Take the node's lease, so that only one repair at a time works on a node."""

from datetime import timedelta
from functools import partial

from reconciler.incidents.progress import Phase
from reconciler.kube.results import Conflict, Stored
from reconciler.repair.resource import Repair, repair_name
from reconciler.repair.step import (
    LATER,
    SOON,
    Act,
    Again,
    Done,
    Step,
    StepContext,
    StepResult,
    StepWords,
    Undo,
)

RENEW_AFTER = timedelta(seconds=10)
"""Age at which a held lease is renewed; a sixth of its duration."""


def lease_name(node: str) -> str:
    """Return the name of a node's repair lease."""
    return f"clusterwright-repair-{node}"


def lock(repair: Repair, context: StepContext) -> StepResult:
    """Hold the node's lease. Expiry does not free it for another action: its holder has to end first."""
    name = lease_name(repair.node)
    lease = context.reader.lease(context.namespace, name)
    take = partial(context.writer.hold_lease, name, lease, repair.action_id, context.now)
    if lease is not None and lease.holder == repair.action_id:
        if lease.renewed_at is None or context.now - lease.renewed_at > RENEW_AFTER:
            # A renewal needs no intent: a crash cannot leave it half done.
            take()
        return Done("holds the lease")
    if lease is not None and lease.holder and is_active(repair, lease.holder, context):
        return Again(f"action {lease.holder} holds the node", LATER)
    return Act("take the lease", lambda: stored(take()))


def release(repair: Repair, context: StepContext) -> Done | Act:
    """Clear the holder of the lease."""
    name = lease_name(repair.node)
    lease = context.reader.lease(context.namespace, name)
    if lease is None or lease.holder != repair.action_id:
        return Done("released the lease")
    return Act("release the lease", lambda: stored(context.writer.release_lease(name, lease)))


def is_active(repair: Repair, other: str, context: StepContext) -> bool:
    """Whether another action may still act on the node: its Repair exists and is not released."""
    found = context.reader.repair(repair_name(repair.node, other))
    return found is not None and not (found.get("status") or {}).get("released")


def stored(result: Stored | Conflict) -> Again:
    """Return when to look after a write: at once, or soon if somebody else was first."""
    return Again(result.reason, SOON) if isinstance(result, Conflict) else Again("", 0)


LOCK = Step(
    name="lock",
    words=StepWords(doing="taking the repair lock", done="repair lock taken"),
    look=lock,
    limit=lambda policy: policy.approval_lifetime,
    late=Phase.LAPSED,
    renew=True,
    undo=Undo(release),
)
"""The limit is the lifetime of an approval: after that the record has lapsed anyway."""
