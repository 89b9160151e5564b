"""The fixed words: what people read for severities, causes, actions, steps, risks and pods."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from bot.incidents.incident import State
from bot.messages.blocks import escape
from checks.finding import Action, Finding, Severity
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.records import Cause
from reconciler.repair.actions.action import ActionWords
from reconciler.repair.actions.registry import ACTIONS
from reconciler.repair.step import StepWords

SEVERITY_ICONS: Final[Mapping[Severity, str]] = {
    Severity.CRITICAL: "\N{LARGE RED CIRCLE}",
    Severity.UNKNOWN: "\N{LARGE PURPLE CIRCLE}",
    Severity.WARNING: "\N{LARGE ORANGE CIRCLE}",
    Severity.APP: "\N{LARGE BLUE CIRCLE}",
    Severity.INFO: "\N{LARGE BLUE CIRCLE}",
}
"""Icon of a headline while the incident is open."""

SEVERITIES: Final[Mapping[Severity, str]] = {
    Severity.CRITICAL: "Critical",
    Severity.UNKNOWN: "Not understood",
    Severity.WARNING: "Warning",
    Severity.APP: "Application",
    Severity.INFO: "Information",
}

CAUSES: Final[Mapping[Cause, str]] = {
    Cause.GPU: "GPU fault",
    Cause.NETWORK: "network fault",
    Cause.STORAGE: "storage fault",
    Cause.HOST: "host fault",
    Cause.AGENT: "monitoring gap",
    Cause.SLURM: "Slurm state",
}

STATES: Final[Mapping[State, str]] = {
    State.OPEN: "open",
    State.LAPSED: "offer lapsed",
    State.DECIDING: "decided, not yet recorded",
    State.APPROVED: "approved",
    State.REPAIRING: "being repaired",
    State.DECLINED: "declined",
    State.HELD: "held",
    State.CLOSED: "closed",
}

NOT_BUILT: Final[Mapping[Action, ActionWords]] = {
    Action.NONE: ActionWords(noun="no repair", order="Leave {node} alone"),
    Action.ASK: ActionWords(noun="manual inspection", order="Inspect {node}"),
    Action.RESET_GPU: ActionWords(noun="GPU reset", order="Reset a GPU of {node}"),
    Action.REPROVISION: ActionWords(noun="reprovisioning", order="Reprovision {node}"),
    Action.FAILOVER: ActionWords(noun="failover", order="Fail over {node}"),
    Action.REMOVE: ActionWords(noun="removal", order="Remove {node}"),
}
"""Words of the actions that this version recommends and cannot carry out; registered actions have their own."""


def action_words(action: Action) -> ActionWords:
    """Return the words for an action."""
    known = ACTIONS.get(action)
    return known.words if known else NOT_BUILT[action]


def step_words(action: Action, step: str) -> StepWords:
    """Return the words for a step of an action; a step that this version does not know is called by its name."""
    known = ACTIONS.get(action)
    return known.step_words(step) if known else StepWords(doing=step, done=step)


def order(action: Action, node: str) -> str:
    """Return an action as an order, such as "Reboot gpu-01"."""
    return action_words(action).order.format(node=escape(node, NAME))


NAME: Final = 80
"""Characters kept of a foreign name (node, pod, person) inside a sentence."""


def finding_line(finding: Finding) -> str:
    """Return a finding as one line of preformatted text: severity, code, device, first time seen, count."""
    device = finding.gpu or finding.device or "node"
    times = f", {finding.count} times" if finding.count > 1 else ""
    since = f"since {_clock(finding.first_seen)}"
    return f"{finding.severity.value:<8}  {finding.subsystem} {finding.code}  {device}  {since}{times}"


def _clock(seconds: float) -> str:
    """Return the node's own time of a finding in UTC; the clock of a node may say anything."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return "an unreadable time"


def pods_sentence(pods: tuple[PlannedPod, ...]) -> str:
    """Return the end of the sentence "The repair …" that says how many pods and GPUs it stops."""
    if not pods:
        return "stops no pods"
    gpus = sum(pod.gpus for pod in pods)
    return f"stops {plural(len(pods), 'pod')}" + (f" holding {plural(gpus, 'GPU')}" if gpus else "")


def pod_line(pod: PlannedPod) -> str:
    """Return a pod and what its eviction costs."""
    costs = [plural(pod.gpus, "GPU")] if pod.gpus else []
    costs += [_risk(each) for each in pod.risks]
    name = escape(f"{pod.namespace}/{pod.name}", NAME)
    return f"• `{name}`" + (f" ({'; '.join(costs)})" if costs else "")


def sentence_case(text: str) -> str:
    """Return text with a capital first letter and the rest as it is."""
    return text[:1].upper() + text[1:]


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def span(time: timedelta) -> str:
    """Return a time span to the second, in the two largest units that matter."""
    seconds = max(0, int(time.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _risk(risk: str) -> str:
    if risk.startswith("pdb:"):
        return f"PodDisruptionBudget {escape(risk[4:], NAME)} allows no eviction now, so the drain will wait"
    known = {"bare": "bare pod: nothing starts it again", "emptyDir": "loses its emptyDir data"}
    return known.get(risk) or escape(risk, NAME)
