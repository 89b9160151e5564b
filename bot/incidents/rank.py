"""The order of severities and of actions. The only copy of these orders in the bot. Pure."""

from checks.finding import Action, Severity

_SEVERITIES = (Severity.INFO, Severity.APP, Severity.WARNING, Severity.UNKNOWN, Severity.CRITICAL)
_ACTIONS = tuple(Action)


def severity_rank(severity: Severity) -> int:
    """Return the place of a severity, 0 for the least; a code that nobody understands ranks above a warning."""
    return _SEVERITIES.index(severity)


def action_rank(action: Action) -> int:
    """Return the place of an action, 0 for the lightest; each action disturbs the node more than the last."""
    return _ACTIONS.index(action)
