"""Reboot: restart the node's machine. Keeps local data; the default for transient faults.

It is complete when the node has a new boot id, is Ready, and has all its GPUs (safety rule 4).
"""

from checks.finding import Action
from reconciler.repair.actions.action import ActionWords, RepairAction
from reconciler.repair.providers.provider import Capability
from reconciler.repair.steps.await_return import return_step, verify_step
from reconciler.repair.steps.cordon import CORDON, UNCORDON
from reconciler.repair.steps.drain import DRAIN
from reconciler.repair.steps.lease import LOCK
from reconciler.repair.steps.pre_state import PRE_STATE
from reconciler.repair.steps.restart import RESTART
from reconciler.repair.steps.revalidate import RECHECK, REVALIDATE
from reconciler.repair.verification import not_booted

REBOOT = RepairAction(
    action=Action.REBOOT,
    words=ActionWords(noun="reboot", order="Reboot {node}"),
    plans={
        1: (
            LOCK,
            REVALIDATE,
            PRE_STATE,
            CORDON,
            DRAIN,
            RECHECK,
            RESTART,
            return_step(not_booted),
            verify_step(not_booted),
            UNCORDON,
        ),
    },
    capability=Capability.RESTART,
    keeps_local_data=True,
)
