"""The registry of actions, and the plans that this version makes and runs. Pure.

An action that is not in `ACTIONS` cannot be approved. To add one, write its module and add it here.
"""

from dataclasses import dataclass
from typing import Final

from checks.finding import Action
from reconciler.config.schema import Pool
from reconciler.incidents.plan import Plan, PlannedPod
from reconciler.incidents.progress import Phase
from reconciler.repair.actions.action import RepairAction
from reconciler.repair.actions.reboot import REBOOT
from reconciler.repair.providers.provider import ProviderKind
from reconciler.repair.providers.registry import PROVIDERS
from reconciler.repair.step import Step, names

ACTIONS: Final[dict[Action, RepairAction]] = {each.action: each for each in (REBOOT,)}
"""Every action by its name in findings and records."""


@dataclass(frozen=True, slots=True)
class RunnablePlan:
    """A plan that this version knows: its action, its steps in order, and the kind of provider it needs."""

    action: RepairAction
    steps: tuple[Step, ...]
    kind: ProviderKind


@dataclass(frozen=True, slots=True)
class RefusedPlan:
    """A plan that must not run, and how its repair ends."""

    phase: Phase
    reason: str


def make_plan(action: RepairAction, provider: str, disturbs: tuple[PlannedPod, ...]) -> Plan:
    """Return a plan of the newest version of `action`, for the provider of that name."""
    ordered = tuple(sorted(disturbs, key=lambda pod: (pod.namespace, pod.name)))
    return Plan(
        action=action.action,
        version=action.version,
        provider=provider,
        steps=names(action.plans[action.version]),
        disturbs=ordered,
        keeps_local_data=action.keeps_local_data,
    )


def resolve(plan: Plan) -> RunnablePlan | RefusedPlan:
    """Return the steps that run for a plan, or why it is refused.

    A plan that this version does not know ends as Held, because a newer version may know it (safety rule 17). A
    plan of a known version with other steps than the published ones fails.
    """
    action, kind = ACTIONS.get(plan.action), PROVIDERS.get(plan.provider)
    if action is None:
        return RefusedPlan(Phase.HELD, f"this version has no action {plan.action!s}")
    steps = action.plans.get(plan.version)
    if steps is None:
        return RefusedPlan(
            Phase.HELD, f"this version does not know version {plan.version} of the {plan.action} plan"
        )
    if plan.steps != names(steps):
        return RefusedPlan(
            Phase.FAILED, f"the plan's steps are not those of version {plan.version} of {plan.action}"
        )
    if kind is None:
        return RefusedPlan(Phase.HELD, f"this version does not know the provider {plan.provider!r}")
    if action.capability not in kind.capabilities:
        return RefusedPlan(Phase.FAILED, f"{plan.provider} cannot {action.capability} a machine")
    return RunnablePlan(action, steps, kind)


def provider_for(pool: Pool) -> ProviderKind | None:
    """Return the kind of provider that serves a pool, None if nothing can act on its machines."""
    return next((kind for kind in PROVIDERS.values() if kind.machine(pool, "node") is not None), None)


def can_carry_out(action: Action, kind: ProviderKind | None) -> bool:
    """Whether this version can carry out `action` on machines of that kind of provider."""
    known = ACTIONS.get(action)
    return known is not None and kind is not None and known.capability in kind.capabilities
