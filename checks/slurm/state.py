"""slurm-state, slurm-drained, gres: what the controller says about a node (table 1.4).

A drain that is not ours is somebody's decision: it is shown, and never lifted (T13).
"""

from collections.abc import Callable

import msgspec

from checks.check import (
    WELL,
    CheckDefinition,
    CheckResult,
    DebounceRule,
    Observation,
    Symptom,
    Unobservable,
)
from checks.finding import Action, Severity
from checks.slurm.node import SlurmNode

OUR_REASON = "clusterwright:"
"""Prefix of the reasons of our own drains."""

SILENT_SECONDS = 300.0
"""How long a node may not answer the controller (table 1.4)."""

_BAD = {"DOWN": "slurm-down", "FAIL": "slurm-fail", "ERROR": "slurm-error"}
_PLANNED = frozenset({"MAINTENANCE", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_ISSUED"})


class SlurmCheck(CheckDefinition, frozen=True, kw_only=True):
    """A check of one node's row; it also gets how many GPUs the agent sees there, None when unknown."""

    observe: Callable[[SlurmNode, int | None], CheckResult]


def observe_state(node: SlurmNode, _: int | None) -> CheckResult:
    """Judge whether Slurm can use the node."""
    if node.flags & _PLANNED or node.reason.startswith(OUR_REASON):
        return WELL
    if node.base == "UNKNOWN" and "NOT_RESPONDING" not in node.flags:
        # The controller has just started: it says neither that the node is well nor that it is sick.
        return Unobservable("the controller does not know the node's state yet")
    bad = [code for word, code in _BAD.items() if word == node.base or word in node.flags]
    symptoms = [_symptom(code, f"Slurm reports the node as {node.base}.", node) for code in bad]
    if "NOT_RESPONDING" in node.flags and not bad:
        silent = _symptom("slurm-not-responding", "The node does not answer Slurm's controller.", node)
        symptoms.append(msgspec.structs.replace(silent, rule=DebounceRule(raise_seconds=SILENT_SECONDS)))
    return Observation(symptoms=tuple(symptoms))


def observe_drain(node: SlurmNode, _: int | None) -> CheckResult:
    """Judge whether somebody else has drained the node."""
    if not node.draining or node.reason.startswith(OUR_REASON) or node.flags & _PLANNED:
        return WELL
    by = f" by {node.reason_by}" if node.reason_by else ""
    text = f"Somebody drained the node in Slurm{by}: {node.reason or 'no reason given'}"
    return Observation(symptoms=(_symptom("slurm-drained", text, node),))


def observe_gres(node: SlurmNode, gpus: int | None) -> CheckResult:
    """Compare the GPUs in the node's Gres with those that the agent sees."""
    if gpus is None or node.gpus is None or node.gpus == gpus or node.base in ("DOWN", "FUTURE", "UNKNOWN"):
        return WELL
    text = f"Slurm offers {node.gpus} GPUs on the node, which has {gpus}."
    return Observation(symptoms=(_symptom("slurm-gres", text, node),))


def _symptom(code: str, summary: str, node: SlurmNode) -> Symptom:
    state = "+".join((node.base, *sorted(node.flags)))
    why = f", reason {node.reason!r} set by {node.reason_by} at {node.reason_at}" if node.reason else ""
    return Symptom(
        code=code,
        subsystem="slurm",
        severity=Severity.WARNING,
        action=Action.ASK,
        device=node.name,
        summary=summary,
        evidence=f"NodeName={node.name} State={state}{why}",
    )


CHECKS = (
    SlurmCheck(name="slurm-state", about="Slurm can use the node", observe=observe_state),
    SlurmCheck(name="slurm-drained", about="nobody has drained the node", observe=observe_drain),
    SlurmCheck(name="gres", about="Slurm offers the GPUs that the node has", observe=observe_gres),
)
"""What each row is checked for."""
