"""slurm-state, slurm-drained, gres: what the controller says of a node (table 1.4).

A drain that is not ours is somebody's decision: it is shown, and never lifted (T13).
"""

import msgspec

from checks.check import WELL, Blind, Check, Look, Rule, Scene, Seen, Symptom
from checks.finding import Action, Severity
from checks.slurm.node import SlurmNode

OUR_REASON = "clusterwright:"
"""How the reasons of our own drains begin."""

SILENT_SECONDS = 300.0
"""How long a node may not answer the controller (table 1.4)."""

_BAD = {"DOWN": "slurm-down", "FAIL": "slurm-fail", "ERROR": "slurm-error"}
_PLANNED = frozenset({"MAINTENANCE", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_ISSUED"})


class Expected(msgspec.Struct, frozen=True):
    """How many GPUs the agent sees on the node; None when it does not say."""

    gpus: int | None


def _node(scene: Scene) -> SlurmNode | Blind:
    held = scene.held(SlurmNode)
    return held if isinstance(held, SlurmNode) else held or Blind("Slurm was not asked yet")


def _state(scene: Scene) -> Look:
    node = _node(scene)
    if isinstance(node, Blind):
        return node
    if node.flags & _PLANNED or node.reason.startswith(OUR_REASON):
        return WELL
    if node.base == "UNKNOWN" and "NOT_RESPONDING" not in node.flags:
        # A controller that has just begun: the node is neither well for it nor sick.
        return Blind("the controller does not know the node's state yet")
    bad = [code for word, code in _BAD.items() if word == node.base or word in node.flags]
    symptoms = [_symptom(code, f"Slurm says that the node is {node.base}.", node) for code in bad]
    if "NOT_RESPONDING" in node.flags and not bad:
        silent = _symptom("slurm-not-responding", "The node does not answer Slurm's controller.", node)
        symptoms.append(msgspec.structs.replace(silent, rule=Rule(raise_seconds=SILENT_SECONDS)))
    return Seen(symptoms=tuple(symptoms))


def _drained(scene: Scene) -> Look:
    node = _node(scene)
    if isinstance(node, Blind):
        return node
    if not node.draining or node.reason.startswith(OUR_REASON) or node.flags & _PLANNED:
        return WELL
    by = f" by {node.reason_by}" if node.reason_by else ""
    text = f"Somebody drained the node in Slurm{by}: {node.reason or 'no reason given'}"
    return Seen(symptoms=(_symptom("slurm-drained", text, node),))


def _gres(scene: Scene) -> Look:
    node, expected = _node(scene), scene.held(Expected)
    if isinstance(node, Blind):
        return node
    seen = expected.gpus if isinstance(expected, Expected) else None
    if seen is None or node.gpus is None or node.gpus == seen or node.base in ("DOWN", "FUTURE", "UNKNOWN"):
        return WELL
    text = f"Slurm offers {node.gpus} GPUs of the node, and it has {seen}."
    return Seen(symptoms=(_symptom("slurm-gres", text, node),))


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


STATE = Check(name="slurm-state", about="Slurm can use the node", look=_state, needs=SlurmNode)
DRAINED = Check(name="slurm-drained", about="nobody has drained the node", look=_drained, needs=SlurmNode)
GRES = Check(name="gres", about="Slurm offers the GPUs that are there", look=_gres, needs=SlurmNode)

CHECKS = (STATE, DRAINED, GRES)
"""What is looked at in each row."""
